package hudiindex.spark.catalyst;

import hudiindex.spark.Uses;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;

/**
 * Notes which thread a query belongs to, and changes no plan.
 *
 * <p>A resolution rule: Spark analyzes a query where somebody writes it down, but may plan and run
 * it on a thread of its own, as for Arrow.
 */
public final class BegunQueries extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    Uses.begin();
    return plan;
  }
}
