package hudiindex.spark.catalyst;

import hudiindex.spark.Scala;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * A part of a plan that reads one Hudi table: {@code [Project]([Filter](relation))}. Where the rule
 * runs, Spark has pushed conditions and columns down to there.
 *
 * @param top the topmost node
 * @param filter the conditions on the table; null if there are none
 * @param relation the leaf
 * @param files what it reads
 */
record HudiScan(LogicalPlan top, Filter filter, LogicalRelation relation, HudiFiles files) {
  /** The scan whose topmost node this is. */
  static Optional<HudiScan> at(LogicalPlan top) {
    LogicalPlan below = top instanceof Project project ? project.child() : top;
    Filter filter = below instanceof Filter some ? some : null;
    LogicalPlan leaf = filter == null ? below : filter.child();
    return HudiFiles.of(leaf)
        .map(files -> new HudiScan(top, filter, (LogicalRelation) leaf, files));
  }

  /** The attributes that the nodes above the relation need, in its order. */
  List<Attribute> columns() {
    List<Attribute> all = List.copyOf(Scala.list(relation.output()));
    if (!(top instanceof Project)) {
      return all;
    }
    AttributeSet needed = top.references();
    AttributeSet tested = filter == null ? AttributeSet.empty() : filter.references();
    return all.stream().filter(each -> needed.contains(each) || tested.contains(each)).toList();
  }

  /** The nodes above the relation, the topmost first. */
  List<LogicalPlan> above() {
    List<LogicalPlan> result = new ArrayList<>();
    if (top instanceof Project) {
      result.add(top);
    }
    if (filter != null) {
      result.add(filter);
    }
    return result;
  }

  /** An expression over the output, written over the attributes of the relation. */
  Expression below(Expression expression) {
    if (!(top instanceof Project project)) {
      return expression;
    }
    if (expression instanceof Attribute attribute) {
      return Scala.list(project.projectList()).stream()
          .filter(each -> each.exprId().equals(attribute.exprId()))
          .findFirst()
          .map(each -> each instanceof Alias alias ? alias.child() : (Expression) each)
          .orElse(expression);
    }
    List<Expression> children =
        Scala.list(expression.children()).stream().map(each -> below(each)).toList();
    return expression.withNewChildren(Scala.seq(children));
  }

  /** The conjuncts of the filter. */
  List<Expression> conjuncts() {
    return filter == null ? List.of() : Conditions.conjuncts(filter.condition());
  }

  /**
   * The same rows by Spark's own scan, with only the columns that are needed: a filter may be less
   * than the one above, which stays. Without sub-queries, which would run twice, and become joins.
   */
  LogicalPlan ownScan() {
    Optional<Expression> kept = Conditions.repeatable(conjuncts());
    LogicalPlan rows = kept.<LogicalPlan>map(each -> new Filter(each, relation)).orElse(relation);
    return new Project(Scala.<NamedExpression>seq(columns()), rows);
  }

  /** The plan with another node in the relation's place. */
  LogicalPlan with(UnaryOperator<LogicalPlan> reader) {
    LogicalPlan rows = reader.apply(ownScan());
    if (filter != null) {
      rows = filter.withNewChildren(Scala.seq(List.of(rows)));
    }
    return top instanceof Project ? top.withNewChildren(Scala.seq(List.of(rows))) : rows;
  }
}
