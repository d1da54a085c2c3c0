package hudiindex.spark.catalyst;

import hudiindex.spark.Scala;
import java.util.Optional;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockLength;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockStart;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.expressions.MonotonicallyIncreasingID;
import org.apache.spark.sql.catalyst.expressions.Rand;
import org.apache.spark.sql.catalyst.expressions.Randn;
import org.apache.spark.sql.catalyst.expressions.SparkPartitionID;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Expressions whose values depend on a row's file, or on which task reads the row and when. Results
 * that may differ at each run anyway do not matter: {@code rand()} without a seed, {@code first}.
 */
final class PhysicalOrder {
  private PhysicalOrder() {}

  /** Why only Spark's own reader may be below a node; empty if any reader may. */
  static Optional<String> reason(LogicalPlan node) {
    for (Expression each : Scala.list(node.expressions())) {
      Optional<String> result = each.deterministic() ? Optional.empty() : reason(each);
      if (result.isPresent()) {
        return result;
      }
    }
    return Optional.empty();
  }

  private static Optional<String> reason(Expression expression) {
    if (expression instanceof InputFileName
        || expression instanceof InputFileBlockStart
        || expression instanceof InputFileBlockLength) {
      return Optional.of("the query asks for the names of files");
    }
    if (expression instanceof MonotonicallyIncreasingID || expression instanceof SparkPartitionID) {
      return Optional.of("the query numbers rows or tasks");
    }
    if (expression instanceof Rand random && !random.hideSeed()
        || expression instanceof Randn normal && !normal.hideSeed()) {
      return Optional.of("the query has random numbers with a seed");
    }
    for (Expression each : Scala.list(expression.children())) {
      Optional<String> result = reason(each);
      if (result.isPresent()) {
        return result;
      }
    }
    return Optional.empty();
  }
}
