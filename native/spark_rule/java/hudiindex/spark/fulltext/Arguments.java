package hudiindex.spark.fulltext;

import hudiindex.spark.Scala;
import hudiindex.spark.Unchecked;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StringType;

/**
 * The arguments of a full-text condition.
 *
 * @param column the text to search
 * @param text what to search for; empty for NULL
 * @param edits the most edits of a word, as written; empty if not given
 */
record Arguments(Expression column, Optional<String> text, Optional<String> edits) {
  private static final String FUZZY = "match_fuzzy";

  /** Reads those of a call. Throws Spark's error if they are not such. */
  static Arguments of(UnboundCall call) {
    String name = call.name();
    List<Expression> all = Scala.list(call.children());
    boolean mayHaveEdits = name.equals(FUZZY);
    if (all.size() < 2 || all.size() > (mayHaveEdits ? 3 : 2)) {
      throw Unchecked.thrown(Refusals.arguments(name, all.size(), mayHaveEdits));
    }
    Expression text = all.get(1);
    boolean isText = text.dataType() instanceof StringType || text.dataType() instanceof NullType;
    Constant searched = isText ? constant(text) : null;
    if (searched == null) {
      throw Unchecked.thrown(Refusals.noText(name, text));
    }
    Optional<String> edits =
        all.size() < 3 ? Optional.empty() : Optional.of(edits(name, all.get(2)));
    return new Arguments(all.get(0), searched.value(), edits);
  }

  private static String edits(String name, Expression written) {
    Constant number = constant(written);
    if (number == null || number.value().isEmpty()) {
      throw Unchecked.thrown(Refusals.noEdits(name));
    }
    return number.value().get();
  }

  /**
   * @param value empty for NULL
   */
  private record Constant(Optional<String> value) {}

  /** What an expression is, whatever the row; null if that depends on the row. */
  private static Constant constant(Expression expression) {
    if (!expression.foldable()) {
      return null;
    }
    try {
      return new Constant(Optional.ofNullable(expression.eval(null)).map(Object::toString));
    } catch (Exception error) { // Scala's are not declared
      return null;
    }
  }
}
