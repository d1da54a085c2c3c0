package hudiindex.spark.catalyst;

import hudiindex.spark.Scala;
import java.util.List;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/**
 * Nodes with other parts; a node whose parts stay the same is returned itself. An analyzer's rule
 * must not call Spark's own transformations of plans.
 */
final class Parts {
  private Parts() {}

  /** A node with other children. */
  static LogicalPlan withChildren(LogicalPlan node, UnaryOperator<LogicalPlan> change) {
    List<LogicalPlan> children = Scala.list(node.children()).stream().map(change).toList();
    return node.withNewChildren(Scala.seq(children));
  }

  /** A node with other plans in the sub-queries of its own expressions. */
  static LogicalPlan withSubqueries(LogicalPlan node, UnaryOperator<LogicalPlan> change) {
    return node.subqueries().isEmpty() ? node : node.transformExpressions(new Subqueries(change));
  }

  private static final class Subqueries extends AbstractPartialFunction<Expression, Expression> {
    private static final long serialVersionUID = 1L;

    private final transient UnaryOperator<LogicalPlan> change;

    Subqueries(UnaryOperator<LogicalPlan> change) {
      this.change = change;
    }

    @Override
    public boolean isDefinedAt(Expression expression) {
      return expression instanceof SubqueryExpression;
    }

    @Override
    @SuppressWarnings("unchecked") // a partial function's result where it is not defined
    public <A extends Expression, B> B applyOrElse(A expression, Function1<A, B> otherwise) {
      if (!(expression instanceof SubqueryExpression subquery)) {
        return otherwise.apply(expression);
      }
      LogicalPlan plan = change.apply(subquery.plan());
      return (B) (plan == subquery.plan() ? subquery : subquery.withNewPlan(plan));
    }
  }
}
