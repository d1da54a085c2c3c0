package hudiindex.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import hudiindex.spark.catalyst.Relations;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.execution.QueryExecution;

/** How the Hudi relations of one query are read, in the order of its optimized plan. */
public final class PlannedUses {
  private final List<Use> uses;

  private PlannedUses(List<Use> uses) {
    this.uses = uses;
  }

  static PlannedUses of(QueryExecution query) {
    Map<Long, String> tables = Relations.tables(query.optimizedPlan());
    List<Use> uses = Uses.of(query.tracker());
    if (uses.isEmpty()) {
      return unasked(tables, IndexSettings.of(query.sparkSession()).off());
    }
    List<Long> order = List.copyOf(tables.keySet());
    return new PlannedUses(
        uses.stream()
            .filter(each -> tables.containsKey(each.relation()))
            .sorted(Comparator.comparingInt(each -> order.indexOf(each.relation())))
            .toList());
  }

  private static PlannedUses unasked(Map<Long, String> tables, Optional<String> off) {
    String reason = off.orElse("Spark's optimizer leaves the rule out");
    List<Use> uses = new ArrayList<>();
    tables.forEach((number, table) -> uses.add(Use.withoutRequest(number, table, reason)));
    return new PlannedUses(uses);
  }

  /** JSON: a list of the uses, each as it is by now. */
  public String json() {
    return written().toString();
  }

  ArrayNode written() {
    ArrayNode result = Json.array();
    uses.forEach(each -> result.add(each.written()));
    return result;
  }
}
