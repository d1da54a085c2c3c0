package hudiindex.spark.catalyst;

import com.fasterxml.jackson.databind.node.ArrayNode;
import hudiindex.spark.Json;
import hudiindex.spark.Scala;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Optional;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.AtomicType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.Seq;

/**
 * Writes Catalyst's values as JSON: strings and booleans as such, integers, days and microseconds
 * as numbers, floating point and decimals as text, bytes in Base64.
 */
final class Values {
  private Values() {}

  /** The value of a literal, alone in an array; empty for any other expression or value. */
  static Optional<ArrayNode> of(Expression expression) {
    ArrayNode result = Json.array();
    return expression instanceof Literal literal
            && isPlain(literal.dataType())
            && add(literal.value(), result)
        ? Optional.of(result)
        : Optional.empty();
  }

  /** The values of a set in one type. */
  static Optional<ArrayNode> of(scala.collection.immutable.Set<Object> values, DataType type) {
    ArrayNode result = Json.array();
    if (!isPlain(type)) {
      return Optional.empty();
    }
    Seq<Object> all = values.toSeq();
    for (Object each : Scala.list(all)) {
      if (!add(each, result)) {
        return Optional.empty();
      }
    }
    return Optional.of(result);
  }

  private static boolean isPlain(DataType type) {
    return type instanceof AtomicType || type instanceof NullType;
  }

  private static boolean add(Object value, ArrayNode into) {
    if (value == null) {
      into.addNull();
    } else if (value instanceof Boolean truth) {
      into.add(truth.booleanValue());
    } else if (value instanceof Float || value instanceof Double) {
      into.add(value.toString());
    } else if (value instanceof Number number) {
      into.add(number.longValue());
    } else if (value instanceof Decimal decimal) {
      into.add(decimal.toJavaBigDecimal().toPlainString());
    } else if (value instanceof byte[] bytes) {
      into.add(bytes);
    } else if (value instanceof UTF8String text && isValid(text)) {
      into.add(text.toString());
    } else {
      return false;
    }
    return true;
  }

  /** Whether text can be written: bytes that are not UTF-8 would become other text. */
  private static boolean isValid(UTF8String text) {
    return Arrays.equals(text.toString().getBytes(StandardCharsets.UTF_8), text.getBytes());
  }
}
