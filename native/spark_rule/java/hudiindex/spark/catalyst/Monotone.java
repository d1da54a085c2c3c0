package hudiindex.spark.catalyst;

import hudiindex.spark.Scala;
import java.math.BigInteger;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Year;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/**
 * Ranges of a column for comparisons of a function of it that never falls where the column rises,
 * such as the year of a date. Spark itself evaluates the function, in the session's time zone, in a
 * binary search for the ends of the range.
 */
final class Monotone {
  /** Beyond these days Spark cannot cast a date to a timestamp. */
  private static final BigInteger MOST_DAYS = BigInteger.valueOf(100_000_000);

  private static final long MICROS_PER_HOUR = 3_600_000_000L;

  private static final BigInteger MOST_MICROS =
      MOST_DAYS.multiply(BigInteger.valueOf(24 * MICROS_PER_HOUR));

  /**
   * A zone may set its clocks back over midnight, so the local date of a timestamp can fall. Local
   * time is within 18 hours of UTC, so none that is 36 hours off is on the wrong side.
   */
  private static final BigInteger CLOCK_CHANGES = BigInteger.valueOf(36 * MICROS_PER_HOUR);

  private final Expression function;
  private final Expression column;

  private Monotone(Expression function, Expression column) {
    this.function = function;
    this.column = column;
  }

  /** What holds for a column wherever the comparison with a literal does; empty if unknown. */
  static Optional<Expression> range(BinaryComparison comparison) {
    boolean mirrored = comparison.left() instanceof Literal;
    Expression function = mirrored ? comparison.right() : comparison.left();
    Expression other = mirrored ? comparison.left() : comparison.right();
    Expression column = column(function);
    if (column == null
        || column == function
        || !(other instanceof Literal literal)
        || literal.value() == null) {
      return Optional.empty();
    }
    boolean equal = comparison instanceof EqualTo || comparison instanceof EqualNullSafe;
    boolean above = comparison instanceof GreaterThan || comparison instanceof GreaterThanOrEqual;
    boolean below = comparison instanceof LessThan || comparison instanceof LessThanOrEqual;
    Monotone monotone = new Monotone(function, column);
    Optional<Expression> from =
        equal || (mirrored ? below : above) ? monotone.from(literal) : Optional.empty();
    Optional<Expression> to =
        equal || (mirrored ? above : below) ? monotone.to(literal) : Optional.empty();
    return from.isPresent() && to.isPresent()
        ? Optional.of(new And(from.get(), to.get()))
        : from.or(() -> to);
  }

  /** The column of which an expression is a function that never falls; null if it is none. */
  private static Expression column(Expression expression) {
    if (expression instanceof Attribute || expression instanceof GetStructField) {
      return most(expression.dataType()) == null ? null : expression;
    }
    if (expression instanceof Year year && year.child().dataType() instanceof DateType) {
      return column(year.child());
    }
    return expression instanceof Cast cast && neverFalls(cast.child().dataType(), cast.dataType())
        ? column(cast.child())
        : null;
  }

  private static boolean neverFalls(DataType from, DataType to) {
    if (from instanceof DateType) {
      return to instanceof TimestampType || to instanceof TimestampNTZType;
    }
    if (from instanceof TimestampType || from instanceof TimestampNTZType) {
      return to instanceof DateType; // but for changes of the clock
    }
    boolean exact = from instanceof IntegralType || from instanceof DecimalType;
    return exact
        && (to instanceof DoubleType
            || to instanceof FloatType
            || ((to instanceof IntegralType || to instanceof DecimalType)
                && Cast.canUpCast(from, to)));
  }

  /** The highest value of a column that is looked at, as a whole number; null for other types. */
  private static BigInteger most(DataType type) {
    if (type instanceof DateType) {
      return MOST_DAYS;
    }
    if (type instanceof TimestampType || type instanceof TimestampNTZType) {
      return MOST_MICROS;
    }
    if (type instanceof DecimalType decimal) {
      return BigInteger.TEN.pow(decimal.precision()).subtract(BigInteger.ONE);
    }
    return type instanceof IntegralType integral
        ? BigInteger.ONE.shiftLeft(8 * integral.defaultSize() - 1).subtract(BigInteger.ONE)
        : null;
  }

  /** The column is no lower than the first value for which the function is at least the literal. */
  private Optional<Expression> from(Literal literal) {
    BigInteger most = most(column.dataType());
    BigInteger first =
        first(most, value -> holds(new GreaterThanOrEqual(evaluated(value), literal)));
    BigInteger end = first.subtract(slack());
    return end.compareTo(most.negate()) <= 0
        ? Optional.empty()
        : Optional.of(new GreaterThanOrEqual(column, value(end)));
  }

  /** The column is no higher than the last value for which the function is at most the literal. */
  private Optional<Expression> to(Literal literal) {
    BigInteger most = most(column.dataType());
    BigInteger above = first(most, value -> !holds(new LessThanOrEqual(evaluated(value), literal)));
    if (above.equals(most)) {
      return Optional.empty();
    }
    BigInteger last = above.subtract(BigInteger.ONE).max(most.negate());
    BigInteger end = last.add(slack());
    return end.compareTo(most) >= 0
        ? Optional.empty()
        : Optional.of(new LessThanOrEqual(column, value(end)));
  }

  /** The first value from which on a test holds; the highest if there is none. */
  private static BigInteger first(BigInteger most, Predicate<BigInteger> test) {
    BigInteger low = most.negate();
    BigInteger high = most;
    while (low.compareTo(high) < 0) {
      BigInteger middle = low.add(high).shiftRight(1); // rounded down
      if (test.test(middle)) {
        high = middle;
      } else {
        low = middle.add(BigInteger.ONE);
      }
    }
    return low;
  }

  private BigInteger slack() {
    DataType type = column.dataType();
    return type instanceof TimestampType || type instanceof TimestampNTZType
        ? CLOCK_CHANGES
        : BigInteger.ZERO;
  }

  private static boolean holds(Expression comparison) {
    return Boolean.TRUE.equals(comparison.eval(null));
  }

  private Expression evaluated(BigInteger value) {
    return with(function, value(value));
  }

  private Expression with(Expression expression, Literal value) {
    return expression == column
        ? value
        : expression.withNewChildren(
            Scala.seq(List.of(with(Scala.list(expression.children()).get(0), value))));
  }

  private Literal value(BigInteger value) {
    DataType type = column.dataType();
    return new Literal(
        type instanceof DecimalType decimal
            ? Decimal.apply(
                new scala.math.BigDecimal(new java.math.BigDecimal(value, decimal.scale())),
                decimal.precision(),
                decimal.scale())
            : whole(value, type),
        type);
  }

  private static Object whole(BigInteger value, DataType type) {
    if (type instanceof ByteType) {
      return value.byteValueExact();
    }
    if (type instanceof ShortType) {
      return value.shortValueExact();
    }
    return type instanceof IntegerType || type instanceof DateType
        ? (Object) value.intValueExact()
        : (Object) value.longValueExact();
  }
}
