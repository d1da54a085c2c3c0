package hudiindex.spark.fulltext;

import hudiindex.spark.Scala;
import hudiindex.spark.catalyst.FullTextCall;
import hudiindex.spark.catalyst.Parts;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreePattern;

/** The calls in a node's own expressions. */
final class Calls {
  private Calls() {}

  /** Whether there may be calls in a plan or its sub-queries; Python's functions look alike. */
  static boolean mayBeIn(LogicalPlan plan) {
    return plan.containsPattern(TreePattern.PYTHON_UDF());
  }

  /** Whether there is a call in a plan, or in a sub-query in it, that is not bound yet. */
  static boolean areUnboundIn(LogicalPlan plan) {
    return mayBeIn(plan)
        && (!unbound(plan, call -> true).isEmpty()
            || Scala.list(plan.children()).stream().anyMatch(Calls::areUnboundIn)
            || Scala.list(plan.subqueries()).stream().anyMatch(Calls::areUnboundIn));
  }

  /** Those that are not bound yet. */
  static List<UnboundCall> unbound(LogicalPlan node, Predicate<UnboundCall> wanted) {
    List<UnboundCall> result = new ArrayList<>();
    for (Expression each : within(node)) {
      if (each instanceof UnboundCall call && wanted.test(call)) {
        result.add(call);
      }
    }
    return result;
  }

  /** The bound searches. */
  static List<FullTextCall> searches(LogicalPlan node) {
    List<FullTextCall> result = new ArrayList<>();
    for (Expression each : within(node)) {
      if (each instanceof FullTextCall call && call.isSearch()) {
        result.add(call);
      }
    }
    return result;
  }

  private static List<Expression> within(LogicalPlan node) {
    List<Expression> result = new ArrayList<>();
    if (mayBeIn(node)) {
      Scala.list(node.expressions()).forEach(each -> add(each, result));
    }
    return result;
  }

  private static void add(Expression expression, List<Expression> into) {
    if (expression.containsPattern(TreePattern.PYTHON_UDF())) {
      into.add(expression);
      Scala.list(expression.children()).forEach(each -> add(each, into));
    }
  }

  /** A node with others in the place of the unbound calls in its own expressions. */
  static LogicalPlan replaced(LogicalPlan node, UnaryOperator<Expression> others) {
    return unbound(node, call -> true).isEmpty()
        ? node
        : Parts.withExpressions(
            node, each -> each instanceof UnboundCall ? others.apply(each) : each);
  }
}
