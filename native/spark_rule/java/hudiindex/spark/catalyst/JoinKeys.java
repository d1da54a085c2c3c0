package hudiindex.spark.catalyst;

import hudiindex.spark.IndexSettings;
import hudiindex.spark.Scala;
import hudiindex.spark.Use;
import hudiindex.spark.Uses;
import hudiindex.spark.source.Decision;
import hudiindex.spark.source.Decisions;
import hudiindex.spark.source.Request;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import scala.Option;

/**
 * Lets the index find the rows of a relation by the keys that another side of a join has, where
 * that side has few rows. The keys are read when the query runs, as for Spark's dynamic pruning of
 * partitions.
 */
final class JoinKeys {
  private final Decisions decisions;
  private final IndexSettings settings;
  private final Set<Link> tried = new HashSet<>();

  JoinKeys(Decisions decisions, IndexSettings settings) {
    this.decisions = decisions;
    this.settings = settings;
  }

  /** Two attributes, by the numbers of their expression ids. */
  private record Link(long key, long needed) {}

  /** What the source says to a request with the keys of one link. */
  private record Attempt(Joins.Link link, long relation, Request request, Decision decision) {}

  /** A plan with keys wherever they pay. A relation that takes keys may give keys to others. */
  LogicalPlan taken(LogicalPlan plan) throws InterruptedException {
    LogicalPlan result = plan;
    Optional<LogicalPlan> next = Optional.of(plan);
    while (next.isPresent()) {
      result = next.get();
      next = once(result);
    }
    return result;
  }

  /** The plan with keys for the first relation that can take some: those that leave fewest rows. */
  private Optional<LogicalPlan> once(LogicalPlan plan) throws InterruptedException {
    List<Long> places = Relations.numbers(plan);
    Optional<Attempt> best = Optional.empty();
    for (Joins.Link each : Joins.links(plan)) {
      long relation = number(each.taking());
      boolean others = best.isPresent() && best.get().relation() != relation;
      if (!others && isOnce(relation, places) && isNew(each)) {
        Attempt attempt = attempt(each, relation);
        long fewest = best.map(before -> before.decision().rows()).orElse(Long.MAX_VALUE);
        if (attempt.decision().isByIndex() && attempt.decision().rows() < fewest) {
          best = Optional.of(attempt);
        }
      }
    }
    return best.map(each -> taken(plan, each));
  }

  /** The join of one occurrence of a relation does not restrict the others. */
  private static boolean isOnce(long relation, List<Long> places) {
    return Collections.frequency(places, relation) == 1;
  }

  private boolean isNew(Joins.Link link) {
    return mostKeys(link.giving()) <= Conditions.MOST_VALUES
        && mayTake(link.taking())
        && tried.add(new Link(id(link.giving().attribute()), id(link.taking().attribute())));
  }

  /** The most keys of a leaf, by the number of its rows; MAX_VALUE if unknown. */
  private static long mostKeys(Joins.Leaf giving) {
    if (giving.node() instanceof LocalRelation values) {
      return values.data().size();
    }
    return giving.node() instanceof Indexed indexed
            && indexed.plannedRead().decision().reader().equals(Decision.DRIVER)
            && indexed.plannedRead().request().best().isEmpty() // Spark may choose others
        ? indexed.plannedRead().decision().rows()
        : Long.MAX_VALUE;
  }

  /** Whether keys may save something: more than the driver reads. */
  private static boolean mayTake(Joins.Leaf taking) {
    if (taking.node() instanceof Indexed indexed) {
      Decision before = indexed.plannedRead().decision();
      return (before.reader().equals(Decision.TASKS) || before.isUndecided())
          && indexed.keys().isEmpty();
    }
    return taking.scan().isPresent() && IndexRule.needsSpark(taking.scan().get()).isEmpty();
  }

  private Attempt attempt(Joins.Link link, long relation) throws InterruptedException {
    Attribute column = link.taking().attribute();
    Request.Key key =
        new Request.Key(column.name(), ceiling(mostKeys(link.giving())), link.orNull());
    Request request =
        link.taking().node() instanceof Indexed indexed
            ? indexed.plannedRead().request()
            : link.taking().scan().orElseThrow().request();
    Request withKey = request.withKey(key);
    return new Attempt(link, relation, withKey, decisions.of(withKey, settings.decideMillis()));
  }

  private LogicalPlan taken(LogicalPlan plan, Attempt attempt) {
    Joins.Leaf taking = attempt.link().taking();
    Option<LogicalPlan> keys = Option.apply(keys(attempt.link().giving()));
    if (taking.node() instanceof Indexed indexed) {
      PlannedRead before = indexed.plannedRead();
      PlannedRead read = planned(before.files(), before.computed(), attempt);
      return Replacement.in(plan, indexed, new Indexed(indexed.child(), keys, read));
    }
    HudiScan scan = taking.scan().orElseThrow();
    PlannedRead read = planned(scan.files(), scan.computed(), attempt);
    return Replacement.in(plan, scan.top(), scan.with(own -> new Indexed(own, keys, read)));
  }

  private PlannedRead planned(HudiFiles files, Map<Long, String> computed, Attempt attempt) {
    Use use = Use.ofRequest(attempt.relation(), attempt.request(), attempt.decision());
    Uses.add(use);
    return new PlannedRead(files, attempt.request(), attempt.decision(), decisions, use, computed);
  }

  /** A power of two, so that a decision serves similar queries. */
  private static long ceiling(long rows) {
    return rows <= 1 ? 1 : Long.highestOneBit(rows - 1) << 1;
  }

  /** The values of a leaf's attribute, as a plan of its own. Sub-queries are left out. */
  private static LogicalPlan keys(Joins.Leaf giving) {
    LogicalPlan rows = giving.node();
    Optional<Expression> condition =
        giving.filter() == null
            ? Optional.empty()
            : Conditions.repeatable(Conditions.conjuncts(giving.filter().condition()));
    LogicalPlan filtered = condition.<LogicalPlan>map(each -> new Filter(each, rows)).orElse(rows);
    return new Project(Scala.<NamedExpression>seq(List.of(giving.attribute())), filtered);
  }

  private static long id(Attribute attribute) {
    return attribute.exprId().id();
  }

  private static long number(Joins.Leaf taking) {
    return taking.node() instanceof Indexed indexed
        ? indexed.plannedRead().use().relation()
        : Relations.number(taking.node());
  }
}
