package hudiindex.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hudiindex.spark.catalyst.Relations;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ParsedStatement;

/** The query of EXPLAIN INDEX in a session without Python. */
public final class ExplainedQuery {
  private static final double NANOS = TimeUnit.SECONDS.toNanos(1);

  private ExplainedQuery() {}

  /**
   * Plans a query, and runs it if it is to be analyzed.
   *
   * @param arguments the values of its parameters: columns by name, or in their order
   * @return {@code changes}, whether it would change something and was left alone; {@code uses},
   *     how its relations are read; if it was run, {@code seconds}
   */
  public static ObjectNode of(
      SparkSession session, String query, boolean analyzes, Object arguments)
      throws ParseException {
    if (changesSomething(session, query)) {
      return Json.object().put("changes", true);
    }
    ObjectNode result = Json.object().put("changes", false);
    long started = System.nanoTime();
    Dataset<Row> frame = planned(session, query, arguments);
    PlannedUses uses = PlannedUses.of(frame.queryExecution());
    if (analyzes) {
      frame.queryExecution().toRdd().count();
      result.put("seconds", (System.nanoTime() - started) / NANOS);
    }
    result.set("uses", uses.written());
    return result;
  }

  /**
   * Whether a text is no query, or one that writes. Throws Spark's error if it cannot be parsed.
   */
  static boolean changesSomething(SparkSession session, String text) throws ParseException {
    LogicalPlan plan = session.sessionState().sqlParser().parsePlan(text);
    return Relations.nodes(plan).stream()
        .anyMatch(each -> each instanceof Command || each instanceof ParsedStatement);
  }

  @SuppressWarnings("unchecked") // see Parameters
  private static Dataset<Row> planned(SparkSession session, String query, Object arguments) {
    return arguments instanceof Map
        ? session.sql(query, (Map<String, Object>) arguments)
        : session.sql(query, ((List<Object>) arguments).toArray());
  }
}
