package hudiindex.spark.catalyst;

import hudiindex.spark.Scala;
import hudiindex.spark.source.Decision;
import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition$;
import org.apache.spark.sql.execution.LocalTableScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.ENSURE_REQUIREMENTS$;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import scala.Option;
import scala.collection.Seq;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * Few rows in one partition: a join, a sort or an aggregation of them needs no exchange, and one
 * task does it.
 */
final class OnePartition {
  /** Tasks start in less time than one task needs for what is done with more rows. */
  private static final long MOST_ROWS = 1_000;

  private OnePartition() {}

  /** Whether the rows are known to be few when the query is planned. */
  static boolean holds(Decision decision) {
    return decision.reader().equals(Decision.DRIVER) && decision.rows() <= MOST_ROWS;
  }

  /** The rows of a plan, in one partition even if there are none. */
  static RDD<InternalRow> of(SparkPlan plan) {
    if (plan instanceof LocalTableScanExec here) {
      Seq<InternalRow> rows = Scala.seq(List.of(here.executeCollect()));
      ClassTag<InternalRow> type = ClassTag$.MODULE$.apply(InternalRow.class);
      return plan.session().sparkContext().parallelize(rows, 1, type);
    }
    return new ShuffleExchangeExec(
            SinglePartition$.MODULE$, plan, ENSURE_REQUIREMENTS$.MODULE$, Option.empty())
        .execute();
  }
}
