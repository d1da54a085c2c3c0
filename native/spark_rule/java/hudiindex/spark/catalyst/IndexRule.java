package hudiindex.spark.catalyst;

import com.fasterxml.jackson.databind.node.ArrayNode;
import hudiindex.spark.IndexSettings;
import hudiindex.spark.Scala;
import hudiindex.spark.Use;
import hudiindex.spark.Uses;
import hudiindex.spark.line.SparkLine;
import hudiindex.spark.source.Decision;
import hudiindex.spark.source.Decisions;
import hudiindex.spark.source.Request;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * Puts {@link Indexed} in the place of Hudi relations whose rows an index finds faster than Spark
 * does.
 *
 * <p>A pre-CBO rule, which Spark applies once to a query and once to each of its sub-queries. It
 * keeps nothing: Spark makes it anew each time.
 */
public final class IndexRule extends Rule<LogicalPlan> {
  private static final Logger LOG = LoggerFactory.getLogger(IndexRule.class);

  private static final AtomicBoolean WARNED = new AtomicBoolean();

  private final SparkSession session;
  private final Decisions decisions;

  /**
   * @param decisions the source of decisions; null if there is none yet
   */
  public IndexRule(SparkSession session, Decisions decisions) {
    this.session = session;
    this.decisions = decisions;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    LogicalPlan indexed = decisions == null || !readsHudi(plan) ? plan : indexed(plan);
    return FullTextCalls.evaluated(indexed);
  }

  private LogicalPlan indexed(LogicalPlan plan) {
    try {
      IndexSettings settings = IndexSettings.of(session);
      if (settings.off().isPresent()) {
        if (!SparkLine.TESTED && WARNED.compareAndSet(false, true)) {
          LOG.warn(
              "INDEX_NOT_ASKED: Spark scans: {}. Set {}=true to use the index all the same.",
              settings.off().get(),
              IndexSettings.UNTESTED);
        }
        return plan;
      }
      LogicalPlan called = FullTextCalls.belowAggregates(plan);
      LogicalPlan best = new BestRows(decisions, settings).found(called);
      LogicalPlan counted = new Counting(decisions, settings).counted(best);
      LogicalPlan byConditions = rewritten(counted, Optional.empty(), false, settings);
      return new JoinKeys(decisions, settings).taken(byConditions);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt(); // Spark looks at it, and ends the query
      return plan;
    } catch (RuntimeException | LinkageError error) { // another release of Hudi, a wrong setting
      LOG.warn(
          "INDEX_NOT_ASKED: Spark scans: {}. Set spark.hudi.index.enabled=false if that lasts.",
          error.toString());
      LOG.debug("The query was not rewritten", error);
      return plan;
    }
  }

  private static boolean readsHudi(LogicalPlan plan) {
    return Scala.list(plan.collectLeaves()).stream()
        .anyMatch(leaf -> HudiFiles.of(leaf).isPresent());
  }

  /**
   * The plan from a node on. No transformDown, which would go on into the scan that Indexed keeps,
   * for ever.
   *
   * @param needsSpark why only Spark may read what is below
   * @param joined whether a join is above
   */
  private LogicalPlan rewritten(
      LogicalPlan node, Optional<String> needsSpark, boolean joined, IndexSettings settings)
      throws InterruptedException {
    if (node instanceof Indexed) {
      return node;
    }
    Optional<HudiScan> scan = HudiScan.at(node);
    if (scan.isPresent()) {
      return read(scan.get(), needsSpark, joined, settings);
    }
    Optional<String> below = needsSpark.or(() -> Descent.reason(node));
    List<LogicalPlan> children = new ArrayList<>();
    for (LogicalPlan each : Scala.list(node.children())) {
      children.add(rewritten(each, below, joined || node instanceof Join, settings));
    }
    return node.withNewChildren(Scala.seq(children)); // the node itself if they are its own
  }

  private LogicalPlan read(
      HudiScan scan, Optional<String> above, boolean joined, IndexSettings settings)
      throws InterruptedException {
    long number = Relations.number(scan.relation());
    ArrayNode where = scan.known();
    Optional<String> reason =
        above.or(() -> needsSpark(scan)).or(() -> lacksCondition(scan, where));
    if (reason.isPresent()) {
      Uses.add(Use.withoutRequest(number, scan.files().table(), reason.get()));
      return scan.top();
    }
    Request request = scan.request(where);
    Decision decision = decisions.of(request, settings.decideMillis());
    if (decision.isUndecided() && joined && scan.files().isPartitioned()) {
      // A node in between would keep it from that.
      decision = Decision.spark("Spark may leave out partitions by a join of it");
    }
    Use use = Use.ofRequest(number, request, decision);
    Uses.add(use);
    if (!decision.isByIndex()) {
      return scan.top();
    }
    PlannedRead read = PlannedRead.of(scan, request, decision, decisions, use);
    return scan.with(ownScan -> new Indexed(ownScan, Option.empty(), read));
  }

  private static Optional<String> lacksCondition(HudiScan scan, ArrayNode where) {
    if (scan.filter() == null) {
      return Optional.of("the query has no condition on it alone");
    }
    return where.isEmpty() ? Optional.of("no index answers a condition on it") : Optional.empty();
  }

  /** Why only Spark may read a scan, whatever its conditions; empty if the index may. */
  static Optional<String> needsSpark(HudiScan scan) {
    if (HintedRelations.isMarked(scan.relation())) {
      return Optional.of("the query's hint " + NoIndexHints.NAME + " leaves it to Spark");
    }
    if (!scan.files().isSnapshot()) {
      return Optional.of("not a snapshot query");
    }
    if (scan.relation().isStreaming()) {
      return Optional.of("it is a stream");
    }
    Set<String> names = scan.files().names();
    for (Attribute each : scan.columns()) {
      if (!names.contains(each.name())) {
        return Optional.of("the query asks for the names of files");
      }
    }
    return scan.above().stream().flatMap(each -> PhysicalOrder.reason(each).stream()).findFirst();
  }
}
