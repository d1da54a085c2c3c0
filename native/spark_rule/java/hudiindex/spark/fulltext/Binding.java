package hudiindex.spark.fulltext;

import hudiindex.spark.SparkErrors;
import hudiindex.spark.Unchecked;
import hudiindex.spark.catalyst.Parts;
import hudiindex.spark.source.FullText;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.rules.Rule;

/**
 * Finds out what the calls of full-text functions in a query mean: which column of which table they
 * search, with which analyzer, and what they score.
 *
 * <p>A resolution rule, which looks at the largest parts of a plan that are resolved otherwise:
 * statements that write never are before the last rules. Spark resolves sub-queries before what is
 * around them; calls there that refer to it are bound with it.
 */
public final class Binding extends Rule<LogicalPlan> {
  private final Supplier<FullText> fullText;

  /**
   * @param fullText knows the columns; supplies null before {@code enable}
   */
  public Binding(Supplier<FullText> fullText) {
    this.fullText = fullText;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (!Calls.areUnboundIn(plan)) {
      return plan;
    }
    FullText present = fullText.get();
    if (present == null) {
      throw Unchecked.thrown(SparkErrors.notEnabled("knows full-text functions"));
    }
    Origins origins = new Origins(plan);
    return bound(plan, new Searches(origins, present), new Scores(origins, present));
  }

  private static LogicalPlan bound(LogicalPlan node, Searches searches, Scores scores) {
    if (node instanceof MergeIntoTable) { // Hudi's writers would evaluate it, and hide the error
      for (UnboundCall each : Calls.unbound(node, call -> true)) {
        throw Unchecked.thrown(Refusals.inMerge(each.name()));
      }
    }
    if (!node.resolved()) {
      return Parts.withChildren(node, each -> bound(each, searches, scores));
    }
    return scores.bound(searches.bound(node, List.of()), List.of());
  }
}
