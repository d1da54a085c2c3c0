package hudiindex.spark.catalyst;

import hudiindex.spark.Scala;
import java.util.List;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.Function1;
import scala.Option;
import scala.runtime.AbstractPartialFunction;

/**
 * Nodes with other parts; a node whose parts stay the same is returned itself. An analyzer's rule
 * must not call Spark's own transformations of plans.
 */
public final class Parts {
  private Parts() {}

  /** A node with other children. */
  public static LogicalPlan withChildren(LogicalPlan node, UnaryOperator<LogicalPlan> change) {
    List<LogicalPlan> children = Scala.list(node.children()).stream().map(change).toList();
    return node.withNewChildren(Scala.seq(children));
  }

  /** A node with other plans in the sub-queries of its own expressions. */
  public static LogicalPlan withSubqueries(LogicalPlan node, UnaryOperator<LogicalPlan> change) {
    return node.subqueries().isEmpty()
        ? node
        : withExpressions(node, each -> withPlan(each, change));
  }

  private static Expression withPlan(Expression expression, UnaryOperator<LogicalPlan> change) {
    if (!(expression instanceof SubqueryExpression subquery)) {
      return expression;
    }
    LogicalPlan plan = change.apply(subquery.plan());
    return plan == subquery.plan() ? subquery : (Expression) subquery.withNewPlan(plan);
  }

  /** A node with others in the place of parts of its own expressions, the outermost first. */
  public static LogicalPlan withExpressions(LogicalPlan node, UnaryOperator<Expression> change) {
    return node.transformExpressions(new Change(change));
  }

  /** An expression with a name. */
  public static Alias named(Expression expression, String name) {
    return new Alias(
        expression,
        name,
        NamedExpression$.MODULE$.newExprId(),
        Scala.seq(List.of()),
        Option.empty(),
        Scala.seq(List.of()));
  }

  /** What a change does to each expression. */
  static final class Change extends AbstractPartialFunction<Expression, Expression> {
    private static final long serialVersionUID = 1L;

    private final transient UnaryOperator<Expression> change;

    Change(UnaryOperator<Expression> change) {
      this.change = change;
    }

    @Override
    public boolean isDefinedAt(Expression expression) {
      return true;
    }

    @Override
    @SuppressWarnings("unchecked") // a partial function's result where it is not defined
    public <A extends Expression, B> B applyOrElse(A expression, Function1<A, B> otherwise) {
      return (B) change.apply(expression);
    }
  }
}
