package hudiindex.spark.catalyst;

import hudiindex.spark.Scala;
import hudiindex.spark.source.Request;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * The files of a Hudi table that a relation reads, by reflection: Hudi may lie on a class loader
 * that does not see this class, and a session may have none.
 */
public final class HudiFiles {
  private static final String PACKAGE = "org.apache.hudi.";

  /** Of a snapshot. Incremental and change data queries have other classes. */
  private static final String SNAPSHOT = "org.apache.hudi.HoodieFileIndex";

  /** HoodieInstant.toString: [requested__completed__action__state]; the second may be absent. */
  private static final Pattern INSTANT =
      Pattern.compile("(\\d{14,17})__(?:\\d{14,17}__)?[a-z]+__COMPLETED");

  private final HadoopFsRelation relation;

  private HudiFiles(HadoopFsRelation relation) {
    this.relation = relation;
  }

  /** The files that a leaf of a plan reads, if they are a Hudi table's. */
  public static Optional<HudiFiles> of(LogicalPlan leaf) {
    if (leaf instanceof LogicalRelation read
        && read.relation() instanceof HadoopFsRelation relation
        && relation.location().getClass().getName().startsWith(PACKAGE)) {
      return Optional.of(new HudiFiles(relation));
    }
    return Optional.empty();
  }

  /** Whether they are those of a snapshot. */
  public boolean isSnapshot() {
    return relation.location().getClass().getName().equals(SNAPSHOT);
  }

  /** The table's base path. */
  public String table() {
    return invoke(metadata(), "getBasePath").toString();
  }

  /** The read options. */
  Map<String, String> options() {
    return Scala.map(relation.options());
  }

  /** The requested times of the completed commits that Spark's own reader sees at this moment. */
  List<String> instants() {
    Object commits = invoke(invoke(metadata(), "getActiveTimeline"), "getCommitsTimeline");
    Object completed = invoke(invoke(commits, "filterCompletedInstants"), "getInstants");
    List<String> result = new ArrayList<>();
    for (Matcher each = INSTANT.matcher(completed.toString()); each.find(); ) {
      result.add(each.group(1));
    }
    return result;
  }

  /**
   * A request for rows of the table.
   *
   * @param where their conditions, see {@link Conditions}
   */
  public Request request(List<Request.Column> columns, String where) {
    return Request.of(table(), instants(), options(), columns, where);
  }

  /** Whether a name is that of a column, and not one of those that Spark makes for each file. */
  boolean hasColumn(String name) {
    return List.of(relation.schema().fieldNames()).contains(name);
  }

  /** Whether Spark may leave partitions out, by the other side of a join. */
  boolean isPartitioned() {
    return !relation.partitionSchema().isEmpty();
  }

  /** The bytes of all files. */
  long bytes() {
    return relation.sizeInBytes();
  }

  private Object metadata() {
    return invoke(relation.location(), "metaClient");
  }

  private static Object invoke(Object object, String method) {
    try {
      return object.getClass().getMethod(method).invoke(object);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException("This release of Hudi has no " + method + "()", error);
    }
  }
}
