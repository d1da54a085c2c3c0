package hudiindex.spark.catalyst;

import com.fasterxml.jackson.databind.node.ArrayNode;
import hudiindex.spark.IndexSettings;
import hudiindex.spark.Scala;
import hudiindex.spark.Use;
import hudiindex.spark.Uses;
import hudiindex.spark.line.SparkLine;
import hudiindex.spark.source.Counts;
import hudiindex.spark.source.Decision;
import hudiindex.spark.source.Decisions;
import hudiindex.spark.source.Request;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.StringType;
import scala.Option;
import scala.collection.Seq;

/**
 * Puts {@link Indexed} in the place of what needs only numbers of rows of one Hudi table: counts,
 * in total or for each value of a text column, and limits on rows without columns, which tests of
 * existence are.
 *
 * <p>The numbers are the result, so that the index has to answer every condition exactly, and alone
 * but for a few files.
 */
final class Counting {
  private static final int MOST_ROWS = 10_000;

  private final Decisions decisions;
  private final IndexSettings settings;

  Counting(Decisions decisions, IndexSettings settings) {
    this.decisions = decisions;
    this.settings = settings;
  }

  /** A whole plan, with the numbers that it needs by the index. */
  LogicalPlan counted(LogicalPlan plan) throws InterruptedException {
    Optional<LogicalPlan> rows =
        plan instanceof Project project && project.projectList().isEmpty()
            ? allRows(project) // isEmpty() takes one of them
            : Optional.empty();
    return rows.isPresent() ? rows.get() : rewritten(plan);
  }

  /**
   * The plan from a node on. Counts in a correlated sub-query stay: Spark takes such a plan apart
   * when it makes a join of it.
   */
  private LogicalPlan rewritten(LogicalPlan node) throws InterruptedException {
    if (node instanceof Indexed
        || node instanceof Subquery subquery && subquery.correlated()
        || Descent.reason(node).isPresent()) {
      return node;
    }
    Optional<LogicalPlan> numbers = instead(node);
    if (numbers.isPresent()) {
      return numbers.get();
    }
    List<LogicalPlan> children = new ArrayList<>();
    for (LogicalPlan each : Scala.list(node.children())) {
      children.add(rewritten(each));
    }
    return node.withNewChildren(Scala.seq(children)); // the node itself if they are its own
  }

  /** What takes a node's place; empty if it needs more than numbers, or the index has none. */
  private Optional<LogicalPlan> instead(LogicalPlan node) throws InterruptedException {
    if (node instanceof Aggregate aggregate) {
      return counts(aggregate);
    }
    return node instanceof LocalLimit limit ? limited(limit) : Optional.empty();
  }

  private Optional<LogicalPlan> counts(Aggregate aggregate) throws InterruptedException {
    HudiScan scan = HudiScan.at(aggregate.child()).orElse(null);
    List<Expression> groups = Scala.list(aggregate.groupingExpressions());
    List<AggregateExpression> functions = functions(aggregate);
    if (scan == null || groups.size() > 1 || groups.isEmpty() && functions.isEmpty()) {
      return Optional.empty();
    }
    Optional<String> group = groups.stream().findFirst().flatMap(each -> textColumn(scan, each));
    if (group.isEmpty() && !groups.isEmpty()) {
      return Optional.empty();
    }
    List<NamedExpression> output = new ArrayList<>();
    groups.forEach(each -> output.add((NamedExpression) each));
    Map<Expression, Expression> attributes = new LinkedHashMap<>();
    List<ArrayNode> conditions = new ArrayList<>();
    for (AggregateExpression each : functions) {
      Optional<ArrayNode> condition = rowsCounted(scan, each);
      if (condition.isEmpty()) {
        return Optional.empty();
      }
      NamedExpression number = Parts.named(each, "count " + conditions.size());
      output.add(number);
      attributes.put(each, number.toAttribute());
      conditions.add(condition.get());
    }
    Counts counts = Counts.of(names(Scala.seq(output)), group, conditions);
    LogicalPlan own =
        SparkLine.aggregate(aggregate.groupingExpressions(), Scala.seq(output), aggregate.child());
    Seq<NamedExpression> columns = replaced(aggregate.aggregateExpressions(), attributes);
    return indexed(scan, counts, own).map(numbers -> new Project(columns, numbers));
  }

  private Optional<LogicalPlan> limited(LocalLimit limit) throws InterruptedException {
    HudiScan scan = HudiScan.at(limit.child()).orElse(null);
    if (scan == null
        || !(limit.child() instanceof Project project && project.references().isEmpty())
        || !(limit.limitExpr() instanceof Literal literal)
        || !(literal.value() instanceof Integer most)
        || most <= 0
        || most > MOST_ROWS) {
      return Optional.empty();
    }
    Project rows = numbered(project);
    LogicalPlan own = new LocalLimit(limit.limitExpr(), rows);
    return indexed(scan, Counts.ofRows(names(rows.projectList()), most), own)
        .map(numbers -> project.withNewChildren(Scala.seq(List.of(numbers))))
        .map(numbers -> limit.withNewChildren(Scala.seq(List.of(numbers))));
  }

  private Optional<LogicalPlan> allRows(Project project) throws InterruptedException {
    HudiScan scan = HudiScan.at(project).orElse(null);
    if (scan == null) {
      return Optional.empty();
    }
    Project rows = numbered(project);
    return indexed(scan, Counts.ofAllRows(names(rows.projectList()), MOST_ROWS), rows)
        .map(numbers -> project.withNewChildren(Scala.seq(List.of(numbers))));
  }

  /** The same rows with a number, since the index returns rows of at least one column. */
  private static Project numbered(Project project) {
    NamedExpression row = Parts.named(new Literal(1L, LongType$.MODULE$), "row");
    return new Project(Scala.seq(List.of(row)), project.child());
  }

  /** The numbers by the index; empty if it does not have them. */
  private Optional<LogicalPlan> indexed(HudiScan scan, Counts counts, LogicalPlan own)
      throws InterruptedException {
    Optional<ArrayNode> where = exact(scan, scan.conjuncts());
    if (where.isEmpty() || IndexRule.needsSpark(scan).isPresent()) {
      return Optional.empty();
    }
    Request request = scan.request(where.get()).counting(counts);
    Decision decision = decisions.of(request, settings.decideMillis());
    if (!decision.isByIndex()) {
      return Optional.empty();
    }
    Use use = Use.ofRequest(Relations.number(scan.relation()), request, decision);
    Uses.add(use);
    PlannedRead read = PlannedRead.of(scan, request, decision, decisions, use);
    return Optional.of(new Indexed(own, Option.empty(), read));
  }

  private static Optional<ArrayNode> exact(HudiScan scan, List<Expression> conditions) {
    return new Conditions(Scala.list(scan.relation().output())).exact(conditions);
  }

  /** The name of the relation's text column that an attribute above it is. */
  private static Optional<String> textColumn(HudiScan scan, Expression attribute) {
    return attribute instanceof Attribute
            && scan.below(attribute) instanceof Attribute column
            && column.dataType() instanceof StringType
            && scan.relation().outputSet().contains(column)
        ? Optional.of(column.name())
        : Optional.empty();
  }

  /** The conditions on the rows that a function counts; empty if it does anything else. */
  private static Optional<ArrayNode> rowsCounted(HudiScan scan, AggregateExpression function) {
    if (!(function.aggregateFunction() instanceof Count count)
        || function.isDistinct()
        || function.filter().isDefined()) {
      return Optional.empty();
    }
    List<Expression> notNull =
        Scala.list(count.children()).stream()
            .filter(Expression::nullable)
            .<Expression>map(each -> new IsNotNull(scan.below(each)))
            .toList();
    return exact(scan, notNull);
  }

  private static List<AggregateExpression> functions(Aggregate aggregate) {
    List<AggregateExpression> result = new ArrayList<>();
    Scala.list(aggregate.aggregateExpressions())
        .forEach(each -> addFunctions((Expression) each, result));
    return result.stream().distinct().toList();
  }

  private static void addFunctions(Expression expression, List<AggregateExpression> into) {
    if (expression instanceof AggregateExpression function) {
      into.add(function);
    } else {
      Scala.list(expression.children()).forEach(each -> addFunctions(each, into));
    }
  }

  private static Seq<NamedExpression> replaced(
      Seq<NamedExpression> columns, Map<Expression, Expression> others) {
    return Scala.seq(
        Scala.list(columns).stream()
            .map(each -> (NamedExpression) ((Expression) each).transform(Scala.function(others)))
            .toList());
  }

  private static List<String> names(Seq<NamedExpression> columns) {
    return Scala.list(columns).stream().map(NamedExpression::name).toList();
  }
}
