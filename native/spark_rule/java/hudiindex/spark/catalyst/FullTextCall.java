package hudiindex.spark.catalyst;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hudiindex.spark.Json;
import hudiindex.spark.Scala;
import hudiindex.spark.SparkErrors;
import hudiindex.spark.Unchecked;
import hudiindex.spark.source.FullText;
import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.types.BooleanType$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.FloatType$;
import scala.Enumeration;
import scala.collection.IndexedSeq;
import scala.collection.Seq;

/**
 * A call of a full-text function, bound to a column's analyzer: a condition on a text, or the score
 * of one. NULL for NULL.
 *
 * <p>Spark's optimizer may move it like any expression, so that it stands above a relation where
 * the rule runs. There an index answers it, or a Python function takes its place.
 */
public final class FullTextCall extends Expression implements CodegenFallback, Serializable {
  private static final long serialVersionUID = 1L;

  /** The name of the function that scores. */
  public static final String SCORE = "score";

  private final Expression child;
  private final String call;
  private final transient FullText fullText;

  /**
   * @param child the text
   * @param call in JSON, with {@code function} and {@code text}, what is searched for; the source
   *     knows the rest
   * @param fullText evaluates it
   */
  public FullTextCall(Expression child, String call, FullText fullText) {
    this.child = child;
    this.call = call;
    this.fullText = fullText;
  }

  /** Whether an expression, or a part of one, may be such a call; so are Python's functions. */
  static boolean mayBeIn(Expression expression) {
    return expression.containsPattern(TreePattern.PYTHON_UDF());
  }

  /** The text. */
  public Expression child() {
    return child;
  }

  @Override
  public Seq<Expression> children() {
    return Scala.seq(List.of(child));
  }

  /** The call in JSON. */
  public ObjectNode json() {
    return (ObjectNode) Json.read(call);
  }

  String call() {
    return call;
  }

  /** Whether it is a condition, and no score. */
  public boolean isSearch() {
    return !name().equals(SCORE);
  }

  /** The same by a function that Spark's tasks can run. */
  Expression evaluated() {
    return fullText.evaluated(call, child);
  }

  private String name() {
    return json().get("function").asText();
  }

  @Override
  public DataType dataType() {
    return isSearch() ? BooleanType$.MODULE$ : FloatType$.MODULE$;
  }

  @Override
  public boolean nullable() {
    return true;
  }

  /** What it is for NULL, as the optimizer asks; nothing evaluates it on a text. */
  @Override
  public Object eval(InternalRow row) {
    if (child.eval(row) == null) {
      return null;
    }
    throw Unchecked.thrown(
        SparkErrors.analysis(
            "PREDICATE_UNSUPPORTED",
            name() + " cannot run here.",
            "Call it in the query that reads the table, and leave the optimizer's rule IndexRule in"
                + " (spark.sql.optimizer.excludedRules)."));
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    return CodegenFallback.super.doGenCode(context, code);
  }

  @Override
  public Seq<Enumeration.Value> nodePatterns() {
    return Scala.seq(List.of(TreePattern.PYTHON_UDF()));
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
    return new FullTextCall(children.head(), call, fullText);
  }

  @Override
  public String prettyName() {
    return name();
  }

  @Override
  public String toString() {
    return name() + "(" + child + ", " + json().path("text").asText() + ")";
  }

  @Override
  public String sql() {
    return name() + "(" + child.sql() + ", " + json().path("text") + ")";
  }

  @Override
  public int productArity() {
    return 3;
  }

  @Override
  public Object productElement(int place) {
    return switch (place) {
      case 0 -> child;
      case 1 -> call;
      default -> fullText;
    };
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof FullTextCall;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof FullTextCall that && that.call.equals(call) && that.child.equals(child);
  }

  @Override
  public int hashCode() {
    return 31 * call.hashCode() + child.hashCode();
  }
}
