package hudiindex.spark.catalyst;

import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** Replaces one node of a plan, which may be in a sub-query; equal nodes elsewhere stay. */
final class Replacement {
  private Replacement() {}

  /** A plan with another node in the place of one of its own. */
  static LogicalPlan in(LogicalPlan plan, LogicalPlan old, LogicalPlan by) {
    if (plan == old) {
      return by;
    }
    if (plan instanceof Indexed) {
      return plan;
    }
    UnaryOperator<LogicalPlan> replaced = each -> in(each, old, by);
    return Parts.withSubqueries(Parts.withChildren(plan, replaced), replaced);
  }
}
