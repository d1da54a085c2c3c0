package hudiindex.spark.catalyst;

import hudiindex.spark.Scala;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.planning.PhysicalOperation;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.Option;
import scala.Tuple3;
import scala.collection.Seq;

/** Plans {@link Indexed}, together with the filters and columns right above it. */
public final class IndexStrategy extends SparkStrategy {
  @Override
  public Seq<SparkPlan> apply(LogicalPlan plan) {
    Option<Tuple3<Seq<NamedExpression>, Seq<Expression>, LogicalPlan>> result =
        PhysicalOperation.unapply(plan);
    return result.isDefined() && result.get()._3() instanceof Indexed indexed
        ? Scala.seq(List.of(planned(result.get()._1(), result.get()._2(), indexed)))
        : Scala.seq(List.of());
  }

  private SparkPlan planned(
      Seq<NamedExpression> columns, Seq<Expression> filters, Indexed indexed) {
    LogicalPlan scan =
        Scala.list(filters).stream()
            .reduce(And::new)
            .<LogicalPlan>map(condition -> new Filter(condition, indexed.child()))
            .orElse(indexed.child());
    LogicalPlan rows = new Project(columns, scan);
    boolean counted = indexed.plannedRead().request().isOfCounts();
    SparkPlan own = counted ? new FallbackExec(rows) : planLater(rows);
    Option<SparkPlan> keys =
        indexed.keys().isEmpty() ? Option.empty() : Option.apply(planLater(indexed.keys().get()));
    return new IndexedExec(columns, filters, indexed.output(), own, keys, indexed.plannedRead());
  }
}
