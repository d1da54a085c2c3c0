package hudiindex.spark.catalyst;

import hudiindex.spark.source.Decision;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition$;
import org.apache.spark.sql.execution.LocalTableScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.ENSURE_REQUIREMENTS$;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import scala.Option;

/**
 * Few rows in one partition: a join, a sort or an aggregation of them needs no exchange, and one task
 * does it.
 */
final class OnePartition {
  /** Tasks start in less time than one task needs for what is done with more rows. */
  private static final long MOST_ROWS = 1_000;

  private OnePartition() {}

  /** Whether the rows are known to be few when the query is planned. */
  static boolean holds(Decision decision) {
    return decision.reader().equals(Decision.DRIVER) && decision.rows() <= MOST_ROWS;
  }

  /** The rows of a plan. Only those in the driver are read by one task. */
  static RDD<InternalRow> of(SparkPlan plan) {
    if (plan instanceof LocalTableScanExec) {
      return plan.execute().coalesce(1, false, Option.empty(), null);
    }
    return new ShuffleExchangeExec(
            SinglePartition$.MODULE$, plan, ENSURE_REQUIREMENTS$.MODULE$, Option.empty())
        .execute();
  }
}
