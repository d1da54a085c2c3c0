package hudiindex.spark.catalyst;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hudiindex.spark.Json;
import hudiindex.spark.Scala;
import hudiindex.spark.source.Request;
import java.util.LinkedHashSet;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.DataType;

/**
 * The keys of a join, read when the query runs: rows with other values of a column are not needed.
 *
 * @param values without NULL, which equals nothing; rows with NULL are needed if the key says so
 */
record KeyValues(Request.Key key, DataType type, Set<Object> values) {
  /** The values in the only column of a plan, which runs. */
  static KeyValues read(Request.Key key, SparkPlan plan) {
    DataType type = plan.output().head().dataType();
    Set<Object> values = new LinkedHashSet<>();
    for (InternalRow row : plan.executeCollect()) {
      if (!row.isNullAt(0)) {
        values.add(row.get(0, type));
      }
    }
    return new KeyValues(key, type, values);
  }

  /** The condition for a request; empty if the values are too many, or cannot be written. */
  Optional<ObjectNode> condition() {
    if (values.size() > Conditions.MOST_VALUES) {
      return Optional.empty();
    }
    return Values.of(Scala.set(values), type)
        .map(
            written -> {
              ObjectNode result = Json.object().put("op", "in").put("type", type.typeName());
              result.putArray("column").add(key.column());
              result.set("values", written);
              return key.orNull() ? orNull(result) : result;
            });
  }

  /** Whether no row is needed. */
  boolean areNone() {
    return values.isEmpty() && !key.orNull();
  }

  private ObjectNode orNull(ObjectNode in) {
    ObjectNode isNull = Json.object().put("op", "is null");
    isNull.putArray("column").add(key.column());
    if (values.isEmpty()) {
      return isNull;
    }
    ObjectNode either = Json.object().put("op", "or");
    either.putArray("of").add(in).add(isNull);
    return either;
  }

  /** The rows of a plan that have one of the values, or all if its output lacks the column. */
  SparkPlan among(SparkPlan rows) {
    for (Attribute each : Scala.list(rows.output())) {
      if (each.name().equals(key.column()) && each.dataType().equals(type)) {
        Expression isAmong = new InSet(each, Scala.set(values));
        return new FilterExec(key.orNull() ? new Or(isAmong, new IsNull(each)) : isAmong, rows);
      }
    }
    return rows;
  }
}
