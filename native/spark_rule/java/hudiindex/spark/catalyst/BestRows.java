package hudiindex.spark.catalyst;

import com.fasterxml.jackson.databind.node.ArrayNode;
import hudiindex.spark.IndexSettings;
import hudiindex.spark.Scala;
import hudiindex.spark.Use;
import hudiindex.spark.Uses;
import hudiindex.spark.source.Decision;
import hudiindex.spark.source.Decisions;
import hudiindex.spark.source.Request;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Descending$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import scala.Option;

/**
 * Puts {@link Indexed} in the place of a relation of which a query wants only the rows that a
 * search scores best, as in ORDER BY score() DESC LIMIT 10. What is above it stays, and chooses
 * among its rows, or among those of Spark's own scan.
 */
final class BestRows {
  private static final int MOST_ROWS = 10_000;

  private final Decisions decisions;
  private final IndexSettings settings;

  BestRows(Decisions decisions, IndexSettings settings) {
    this.decisions = decisions;
    this.settings = settings;
  }

  /** A plan with the best rows wherever no others are wanted. */
  LogicalPlan found(LogicalPlan plan) throws InterruptedException {
    if (!FullTextCalls.mayBeIn(plan) || Descent.reason(plan).isPresent()) {
      return plan;
    }
    if (plan instanceof LocalLimit limit) {
      Optional<LogicalPlan> best = instead(limit);
      if (best.isPresent()) {
        return best.get();
      }
    }
    LogicalPlan[] children = Scala.list(plan.children()).toArray(LogicalPlan[]::new);
    for (int place = 0; place < children.length; place++) {
      children[place] = found(children[place]);
    }
    return plan.withNewChildren(Scala.seq(List.of(children)));
  }

  private Optional<LogicalPlan> instead(LocalLimit limit) throws InterruptedException {
    LogicalPlan node = limit.child();
    while (node instanceof Project && Descent.reason(node).isEmpty()) {
      node = node.children().head();
    }
    HudiScan scan = node instanceof Sort sort ? HudiScan.at(sort.child()).orElse(null) : null;
    if (scan == null
        || scan.filter() == null
        || !(limit.limitExpr() instanceof Literal literal)
        || !(literal.value() instanceof Integer most)
        || most <= 0
        || most > MOST_ROWS) {
      return Optional.empty();
    }
    Optional<FullTextCall> score = score((Sort) node, scan);
    Conditions conditions = new Conditions(Scala.list(scan.relation().output()));
    Optional<ArrayNode> where = conditions.exact(scan.conjuncts());
    if (score.isEmpty() || where.isEmpty() || IndexRule.needsSpark(scan).isPresent()) {
      return Optional.empty();
    }
    Request.Best best = new Request.Best(most, conditions.computed(score.get()));
    Request request = scan.request(where.get()).ofBest(best);
    Decision decision = decisions.of(request, settings.decideMillis());
    if (!decision.isByIndex()) {
      return Optional.empty();
    }
    Use use = Use.ofRequest(Relations.number(scan.relation()), request, decision);
    Uses.add(use);
    PlannedRead read = PlannedRead.of(scan, request, decision, decisions, use);
    LogicalPlan rows = scan.with(ownScan -> new Indexed(ownScan, Option.empty(), read));
    return Optional.of(Replacement.in(limit, scan.top(), rows));
  }

  /** The score by which a sort orders a scan, the highest first; empty if it orders otherwise. */
  private static Optional<FullTextCall> score(Sort sort, HudiScan scan) {
    List<SortOrder> order = Scala.list(sort.order());
    if (!sort.global()
        || order.size() != 1
        || order.get(0).direction() != Descending$.MODULE$
        || !(order.get(0).child() instanceof Attribute key)) {
      return Optional.empty();
    }
    Expression source = scan.below(key);
    return source instanceof FullTextCall call && scan.calls().containsKey(call) && !call.isSearch()
        ? Optional.of(call)
        : Optional.empty();
  }
}
