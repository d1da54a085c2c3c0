package hudiindex.spark.catalyst;

import hudiindex.spark.Scala;
import hudiindex.spark.line.SparkLine;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationDef;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Marks the Hudi relations that a hint leaves to Spark. The mark is a read option, which stays when
 * rules copy a relation; a node's tags do not.
 */
final class HintedRelations {
  private static final String OPTION = "hudiindex.hint";

  private final SparkSession session;
  private final Set<Long> ctes = new HashSet<>();

  HintedRelations(SparkSession session) {
    this.session = session;
  }

  /** Whether a hint leaves a relation to Spark. */
  static boolean isMarked(LogicalRelation relation) {
    return relation.relation() instanceof HadoopFsRelation files
        && files.options().contains(OPTION);
  }

  /** Whether Spark takes a plan's rows from its cache, where it would not find a marked plan. */
  boolean isCached(LogicalPlan plan) {
    return SparkLine.isCached(session, plan);
  }

  /** A plan with marks on all Hudi relations in it, and in the sub-queries of its conditions. */
  LogicalPlan marked(LogicalPlan plan) {
    if (isCached(plan)) {
      return plan;
    }
    if (HudiFiles.of(plan).isPresent()) {
      return marked((LogicalRelation) plan);
    }
    if (plan instanceof CTERelationRef reference) {
      ctes.add(reference.cteId());
    }
    return Parts.withSubqueries(Parts.withChildren(plan, this::marked), this::marked);
  }

  /** A plan with marks in the CTEs to which marked parts of it refer, which stand beside them. */
  LogicalPlan withMarkedCtes(LogicalPlan plan) {
    if (ctes.isEmpty()) {
      return plan;
    }
    // A definition stands before those that refer to it, which may be marked for that.
    LogicalPlan[] children = Scala.list(plan.children()).toArray(LogicalPlan[]::new);
    for (int place = children.length - 1; place >= 0; place--) {
      children[place] = withMarkedCtes(children[place]);
    }
    LogicalPlan result = plan.withNewChildren(Scala.seq(List.of(children)));
    return result instanceof CTERelationDef cte && ctes.contains(cte.id())
        ? marked(result)
        : result;
  }

  private static LogicalRelation marked(LogicalRelation relation) {
    HadoopFsRelation files = (HadoopFsRelation) relation.relation();
    Map<String, String> options = new HashMap<>(Scala.map(files.options()));
    options.put(OPTION, NoIndexHints.NAME);
    HadoopFsRelation marked =
        files.copy(
            files.location(),
            files.partitionSchema(),
            files.dataSchema(),
            files.bucketSpec(),
            files.fileFormat(),
            Scala.immutable(options),
            files.sparkSession());
    return SparkLine.copied(relation, marked);
  }
}
