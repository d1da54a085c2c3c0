package hudiindex.spark.catalyst;

import hudiindex.spark.line.SparkLine;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.AppendColumns;
import org.apache.spark.sql.catalyst.plans.logical.AppendColumnsWithObject;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationDef;
import org.apache.spark.sql.catalyst.plans.logical.CoGroup;
import org.apache.spark.sql.catalyst.plans.logical.CollectMetrics;
import org.apache.spark.sql.catalyst.plans.logical.Deduplicate;
import org.apache.spark.sql.catalyst.plans.logical.DeserializeToObject;
import org.apache.spark.sql.catalyst.plans.logical.Distinct;
import org.apache.spark.sql.catalyst.plans.logical.Except;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.FlatMapCoGroupsInPandas;
import org.apache.spark.sql.catalyst.plans.logical.FlatMapGroupsInPandas;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.Intersect;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapElements;
import org.apache.spark.sql.catalyst.plans.logical.MapGroups;
import org.apache.spark.sql.catalyst.plans.logical.MapInPandas;
import org.apache.spark.sql.catalyst.plans.logical.MapPartitions;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression;
import org.apache.spark.sql.catalyst.plans.logical.ReturnAnswer;
import org.apache.spark.sql.catalyst.plans.logical.ScriptTransformation;
import org.apache.spark.sql.catalyst.plans.logical.SerializeFromObject;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.TypedFilter;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.plans.logical.WindowGroupLimit;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;
import org.apache.spark.sql.execution.command.DataWritingCommand;
import org.apache.spark.sql.execution.datasources.WriteFiles;

/**
 * The nodes below which another reader may return the rows. Nothing below any other node, such as a
 * row policy or a sample, is changed.
 */
final class Descent {
  private static final Set<Class<?>> NODES =
      Set.of(
          Project.class,
          Filter.class,
          Join.class,
          Aggregate.class,
          Sort.class,
          Window.class,
          WindowGroupLimit.class,
          Union.class,
          Generate.class,
          Expand.class,
          Distinct.class,
          Deduplicate.class,
          Intersect.class,
          Except.class,
          GlobalLimit.class,
          LocalLimit.class,
          Offset.class,
          Repartition.class,
          RepartitionByExpression.class,
          RebalancePartitions.class,
          SubqueryAlias.class,
          Subquery.class,
          WithCTE.class,
          CTERelationDef.class,
          ReturnAnswer.class,
          // They hand on all rows, or give them to the user's functions, or observe them.
          AppendColumns.class,
          AppendColumnsWithObject.class,
          CoGroup.class,
          CollectMetrics.class,
          DeserializeToObject.class,
          FlatMapCoGroupsInPandas.class,
          FlatMapGroupsInPandas.class,
          MapElements.class,
          MapGroups.class,
          MapInPandas.class,
          MapPartitions.class,
          SparkLine.MAP_IN_ARROW,
          ScriptTransformation.class,
          SerializeFromObject.class,
          TypedFilter.class,
          WriteFiles.class);

  private Descent() {}

  /** Why only Spark's own reader may be below a node; empty if any reader may. */
  static Optional<String> reason(LogicalPlan node) {
    boolean writes = node instanceof DataWritingCommand || node instanceof V2WriteCommand;
    if (!writes && !NODES.contains(node.getClass())) {
      return Optional.of(node.getClass().getSimpleName() + " stands above it in the plan");
    }
    return PhysicalOrder.reason(node);
  }
}
