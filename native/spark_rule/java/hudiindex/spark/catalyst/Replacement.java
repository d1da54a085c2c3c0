package hudiindex.spark.catalyst;

import hudiindex.spark.Scala;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/** Replaces one node of a plan, which may be in a sub-query; equal nodes elsewhere stay. */
final class Replacement extends AbstractPartialFunction<Expression, Expression> {
  private static final long serialVersionUID = 1L;

  private final transient LogicalPlan old;
  private final transient LogicalPlan by;

  private Replacement(LogicalPlan old, LogicalPlan by) {
    this.old = old;
    this.by = by;
  }

  /** A plan with another node in the place of one of its own. */
  static LogicalPlan in(LogicalPlan plan, LogicalPlan old, LogicalPlan by) {
    return new Replacement(old, by).of(plan);
  }

  private LogicalPlan of(LogicalPlan node) {
    if (node == old) {
      return by;
    }
    if (node instanceof Indexed) {
      return node;
    }
    List<LogicalPlan> children = new ArrayList<>();
    boolean changed = false;
    for (LogicalPlan each : Scala.list(node.children())) {
      LogicalPlan child = of(each);
      changed |= child != each;
      children.add(child);
    }
    LogicalPlan result = changed ? node.withNewChildren(Scala.seq(children)) : node;
    return node.subqueries().isEmpty() ? result : result.transformExpressions(this);
  }

  @Override
  public boolean isDefinedAt(Expression expression) {
    return expression instanceof SubqueryExpression;
  }

  @Override
  @SuppressWarnings("unchecked") // Scala's bounds
  public <A extends Expression, B> B applyOrElse(A expression, Function1<A, B> otherwise) {
    if (!(expression instanceof SubqueryExpression subquery)) {
      return otherwise.apply(expression);
    }
    LogicalPlan plan = of(subquery.plan());
    return (B) (plan == subquery.plan() ? subquery : subquery.withNewPlan(plan));
  }
}
