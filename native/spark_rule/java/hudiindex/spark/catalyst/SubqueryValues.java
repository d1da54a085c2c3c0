package hudiindex.spark.catalyst;

import hudiindex.spark.Scala;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.trees.TreePattern;

/** Values of sub-queries, which are known when a query runs: none of them is of one row above. */
final class SubqueryValues {
  private SubqueryValues() {}

  /** Whether a logical expression is such a value, or computed of some and of nothing else. */
  static boolean has(Expression expression) {
    return expression.containsPattern(TreePattern.SCALAR_SUBQUERY())
        && expression.references().isEmpty()
        && expression.deterministic()
        && occurs(ScalarSubquery.class, expression);
  }

  /**
   * The physical conditions that have such values, with literals in their place. The sub-queries
   * have run. Throws what evaluating throws.
   */
  static List<Expression> known(List<Expression> conditions) {
    return conditions.stream()
        .filter(each -> each.deterministic() && occurs(ran(), each))
        .map(SubqueryValues::evaluated)
        .toList();
  }

  private static Expression evaluated(Expression expression) {
    if (!occurs(ran(), expression)) {
      return expression;
    }
    if (expression.references().isEmpty()) {
      return new Literal(expression.eval(null), expression.dataType());
    }
    List<Expression> children =
        Scala.list(expression.children()).stream().map(SubqueryValues::evaluated).toList();
    return expression.withNewChildren(Scala.seq(children));
  }

  private static Class<? extends Expression> ran() {
    return org.apache.spark.sql.execution.ScalarSubquery.class;
  }

  private static boolean occurs(Class<? extends Expression> kind, Expression in) {
    return kind.isInstance(in)
        || Scala.list(in.children()).stream().anyMatch(each -> occurs(kind, each));
  }
}
