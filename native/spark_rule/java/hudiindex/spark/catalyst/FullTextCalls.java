package hudiindex.spark.catalyst;

import hudiindex.spark.Scala;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreePattern;

/** The full-text calls in optimized plans. */
final class FullTextCalls {
  private FullTextCalls() {}

  /** Whether there may be calls in a plan or its sub-queries; Python's functions look alike. */
  static boolean mayBeIn(LogicalPlan plan) {
    return plan.containsPattern(TreePattern.PYTHON_UDF());
  }

  /** The calls in a node's own expressions. */
  static List<FullTextCall> in(LogicalPlan node) {
    List<FullTextCall> result = new ArrayList<>();
    if (mayBeIn(node)) {
      Scala.list(node.expressions()).forEach(each -> add(each, result));
    }
    return result;
  }

  private static void add(Expression expression, List<FullTextCall> into) {
    if (!expression.containsPattern(TreePattern.PYTHON_UDF())) {
      return;
    }
    if (expression instanceof FullTextCall call) {
      into.add(call);
    }
    Scala.list(expression.children()).forEach(each -> add(each, into));
  }

  /** A plan whose aggregates find the calls on the rows below them in columns of these. */
  static LogicalPlan belowAggregates(LogicalPlan plan) {
    if (!mayBeIn(plan) || plan instanceof Indexed) {
      return plan;
    }
    LogicalPlan node = Parts.withChildren(plan, FullTextCalls::belowAggregates);
    if (!(node instanceof Aggregate aggregate) || in(node).isEmpty()) {
      return node;
    }
    Map<FullTextCall, Alias> columns = new LinkedHashMap<>();
    Scala.list(aggregate.groupingExpressions()).forEach(each -> addColumns(each, columns));
    Set<FullTextCall> grouped = Set.copyOf(columns.keySet());
    for (Expression each : Scala.list(aggregate.expressions())) {
      addColumnsOfFunctions(each, columns);
    }
    if (columns.isEmpty()) {
      return node;
    }
    // Other calls are on what the rows are grouped by, not on the rows below.
    LogicalPlan result =
        Parts.withExpressions(
            node,
            each ->
                each instanceof AggregateExpression
                    ? replaced(each, columns)
                    : each instanceof FullTextCall call && grouped.contains(call)
                        ? replaced(call, columns)
                        : each);
    LogicalPlan rows = computed(aggregate.child(), columns.values(), result.references());
    return result.withNewChildren(Scala.seq(List.of(rows)));
  }

  private static void addColumns(Expression expression, Map<FullTextCall, Alias> into) {
    List<FullTextCall> calls = new ArrayList<>();
    add(expression, calls);
    calls.forEach(each -> into.computeIfAbsent(each, call -> Parts.named(call, "computed")));
  }

  private static void addColumnsOfFunctions(Expression expression, Map<FullTextCall, Alias> into) {
    if (expression instanceof AggregateExpression) {
      addColumns(expression, into);
    } else {
      Scala.list(expression.children()).forEach(each -> addColumnsOfFunctions(each, into));
    }
  }

  private static Expression replaced(Expression expression, Map<FullTextCall, Alias> columns) {
    if (expression instanceof FullTextCall call) {
      return (Expression) columns.get(call).toAttribute();
    }
    List<Expression> children =
        Scala.list(expression.children()).stream().map(each -> replaced(each, columns)).toList();
    return expression.withNewChildren(Scala.seq(children));
  }

  /** A plan with more columns, and only those of its own that are needed. */
  private static LogicalPlan computed(
      LogicalPlan plan, Collection<Alias> columns, AttributeSet needed) {
    List<NamedExpression> all = new ArrayList<>();
    if (plan instanceof Project project && HudiScan.at(plan).isPresent()) {
      HudiScan scan = HudiScan.at(plan).orElseThrow();
      Scala.list(project.projectList()).stream()
          .filter(each -> needed.contains(each.toAttribute()))
          .forEach(all::add);
      for (Alias each : columns) {
        all.add((Alias) each.withNewChildren(Scala.seq(List.of(scan.below(each.child())))));
      }
      return new Project(Scala.seq(all), project.child());
    }
    Scala.list(plan.output()).stream().filter(needed::contains).forEach(all::add);
    all.addAll(columns);
    return new Project(Scala.seq(all), plan);
  }

  /** A plan whose calls Spark's tasks can run: as Python functions, the same for equal calls. */
  static LogicalPlan evaluated(LogicalPlan plan) {
    Map<FullTextCall, Expression> known = new LinkedHashMap<>();
    return evaluated(
        plan,
        each ->
            each instanceof FullTextCall call
                ? known.computeIfAbsent(call, FullTextCall::evaluated)
                : each);
  }

  private static LogicalPlan evaluated(LogicalPlan plan, UnaryOperator<Expression> functions) {
    if (!mayBeIn(plan)) {
      return plan;
    }
    LogicalPlan node = Parts.withChildren(plan, each -> evaluated(each, functions));
    node = Parts.withSubqueries(node, each -> evaluated(each, functions));
    return in(node).isEmpty() ? node : Parts.withExpressions(node, functions);
  }
}
