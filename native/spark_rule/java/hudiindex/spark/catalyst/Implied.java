package hudiindex.spark.catalyst;

import hudiindex.spark.Scala;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.StringPredicate;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.util.TypeUtils;
import org.apache.spark.sql.types.AtomicType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * Conditions that no index answers, as others that are TRUE at least wherever they are. Spark's own
 * filter stays above the rows. Nothing below a NOT is widened: there, more rows would be fewer.
 */
final class Implied {
  /** The most values for each of which a range is searched. */
  private static final int MOST_RANGES = 100;

  private Implied() {}

  /** What a condition implies: itself if nothing else is known. */
  static Expression by(Expression condition) {
    if (condition instanceof And both) {
      return new And(by(both.left()), by(both.right()));
    }
    if (condition instanceof Or either) {
      return new Or(by(either.left()), by(either.right()));
    }
    return changed(condition).orElse(condition);
  }

  private static Optional<Expression> changed(Expression condition) {
    Optional<Expression> result = withoutCoalesce(condition);
    if (result.isPresent()) {
      return result;
    }
    if (condition instanceof BinaryComparison comparison) {
      return ofTruth(comparison).or(() -> ofTuple(comparison)).or(() -> Monotone.range(comparison));
    }
    if (condition instanceof In in && Scala.list(in.list()).stream().allMatch(Implied::isLiteral)) {
      List<Object> values = new ArrayList<>();
      Scala.list(in.list()).forEach(each -> values.add(((Literal) each).value()));
      return ofAny(in.value(), values);
    }
    if (condition instanceof InSet in) {
      return ofAny(in.child(), new ArrayList<>(Scala.set(in.hset())));
    }
    return Optional.empty();
  }

  private static boolean isLiteral(Expression expression) {
    return expression instanceof Literal;
  }

  /** {@code p IS TRUE} and {@code p IS FALSE}. */
  private static Optional<Expression> ofTruth(BinaryComparison comparison) {
    boolean equal = comparison instanceof EqualTo || comparison instanceof EqualNullSafe;
    if (equal
        && comparison.left().dataType() instanceof BooleanType
        && comparison.right() instanceof Literal literal
        && literal.value() instanceof Boolean truth) {
      Expression test = comparison.left();
      return Optional.of(by(truth ? test : new Not(test)));
    }
    return Optional.empty();
  }

  /**
   * A condition on the first of some values that is not NULL is one on any of them. Where all are
   * NULL it is TRUE only if it is TRUE of NULL.
   */
  private static Optional<Expression> withoutCoalesce(Expression condition) {
    Optional<Coalesce> found = coalesce(condition);
    if (found.isEmpty()) {
      return Optional.empty();
    }
    Coalesce coalesce = found.get();
    List<Expression> arms = new ArrayList<>();
    List<Expression> absent = new ArrayList<>();
    List<Expression> all = new ArrayList<>(Scala.list(coalesce.children()));
    all.add(new Literal(null, coalesce.dataType()));
    for (Expression each : all) {
      Expression test = replaced(condition, coalesce, each);
      if (!(each instanceof Literal)) {
        arms.add(by(test));
        absent.add(new IsNull(each));
      } else if (!test.references().isEmpty()) {
        return Optional.empty();
      } else if (Boolean.TRUE.equals(test.eval(null))) {
        arms.add(absent.stream().reduce(And::new).orElse(test));
      }
    }
    return arms.stream().reduce(Or::new);
  }

  /** One that the condition is, compares, or tests. Sub-queries cannot be evaluated yet. */
  private static Optional<Coalesce> coalesce(Expression condition) {
    if (condition instanceof Coalesce itself) {
      return Optional.of(itself);
    }
    boolean tests =
        condition instanceof BinaryComparison
            || condition instanceof In
            || condition instanceof InSet
            || condition instanceof Not
            || condition instanceof StringPredicate
            || condition instanceof Like;
    if (!tests || SubqueryExpression.hasSubquery(condition)) {
      return Optional.empty();
    }
    return Scala.list(condition.children()).stream()
        .map(each -> each instanceof Cast cast ? cast.child() : each)
        .filter(Coalesce.class::isInstance)
        .map(Coalesce.class::cast)
        .findFirst();
  }

  private static Expression replaced(Expression in, Expression part, Expression by) {
    if (in == part) {
      return by;
    }
    List<Expression> children =
        Scala.list(in.children()).stream().map(each -> replaced(each, part, by)).toList();
    return in.withNewChildren(Scala.seq(children));
  }

  /** {@code (a, b) = (1, 2)}. */
  private static Optional<Expression> ofTuple(BinaryComparison comparison) {
    boolean equal = comparison instanceof EqualTo || comparison instanceof EqualNullSafe;
    return equal && comparison.right() instanceof Literal literal && literal.value() != null
        ? ofTuples(comparison.left(), List.of(literal.value()))
        : Optional.empty();
  }

  private static Optional<Expression> ofAny(Expression tested, List<Object> values) {
    List<Object> known = new ArrayList<>(values);
    known.removeIf(each -> each == null); // equal to nothing
    if (known.isEmpty()) {
      return Optional.empty();
    }
    DataType type = tested.dataType();
    if (type instanceof StructType) {
      return ofTuples(tested, known);
    }
    if (known.size() > Conditions.MOST_VALUES && type instanceof AtomicType) {
      Comparator<Object> order = TypeUtils.getInterpretedOrdering(type);
      Expression least = new Literal(known.stream().min(order).orElseThrow(), type);
      Expression most = new Literal(known.stream().max(order).orElseThrow(), type);
      return Optional.of(
          by(new And(new GreaterThanOrEqual(tested, least), new LessThanOrEqual(tested, most))));
    }
    if (known.size() > MOST_RANGES) {
      return Optional.empty();
    }
    List<Expression> ranges = new ArrayList<>();
    for (Object each : known) {
      Optional<Expression> range = Monotone.range(new EqualTo(tested, new Literal(each, type)));
      if (range.isEmpty()) {
        return Optional.empty();
      }
      ranges.add(range.get());
    }
    return ranges.stream().reduce(Or::new);
  }

  /** Each field is one of those of the tuples; NULL is equal to NULL in a tuple. */
  private static Optional<Expression> ofTuples(Expression tested, List<Object> tuples) {
    if (!(tested instanceof CreateNamedStruct struct) || tuples.size() > Conditions.MOST_VALUES) {
      return Optional.empty();
    }
    List<Expression> conditions = new ArrayList<>();
    for (Expression field : Scala.list(struct.valExprs())) {
      int place = conditions.size();
      Set<Expression> values = new LinkedHashSet<>();
      boolean hasNull = false;
      for (Object each : tuples) {
        Object value = ((InternalRow) each).get(place, field.dataType());
        hasNull |= value == null;
        if (value != null) {
          values.add(new Literal(value, field.dataType()));
        }
      }
      Expression in = new In(field, Scala.seq(List.copyOf(values)));
      Expression isNull = new IsNull(field);
      conditions.add(values.isEmpty() ? isNull : hasNull ? new Or(by(in), isNull) : by(in));
    }
    return conditions.stream().reduce(And::new);
  }
}
