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
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.DataType;

/**
 * The keys of a join, read when the query runs: rows with other values of a column are not needed.
 *
 * @param values without NULL, which equals nothing
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
              return result;
            });
  }

  /** The rows of a plan that have one of the values, or all if its output lacks the column. */
  SparkPlan among(SparkPlan rows) {
    for (Attribute each : Scala.list(rows.output())) {
      if (each.name().equals(key.column()) && each.dataType().equals(type)) {
        return new FilterExec(new InSet(each, Scala.set(values)), rows);
      }
    }
    return rows;
  }
}
