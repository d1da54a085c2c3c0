package hudiindex.spark.catalyst;

import com.fasterxml.jackson.databind.node.ArrayNode;
import hudiindex.spark.Scala;
import hudiindex.spark.source.Request;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
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

  /**
   * HoodieInstant.toString of the instants that getCommitsTimeline keeps:
   * [requested__completed__action__state]; the second may be absent. That method itself would also
   * compute a digest of them.
   */
  private static final Pattern COMMIT =
      Pattern.compile(
          "(\\d{14,17})__(?:\\d{14,17}__)?"
              + "(?:commit|deltacommit|replacecommit|clustering)__COMPLETED");

  /** The methods that were looked for, as long as their class is there. */
  private static final ClassValue<Map<String, Method>> METHODS =
      new ClassValue<>() {
        @Override
        protected Map<String, Method> computeValue(Class<?> type) {
          return new ConcurrentHashMap<>();
        }
      };

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
    Object all = invoke(invoke(metadata(), "getActiveTimeline"), "getInstants");
    List<String> result = new ArrayList<>();
    for (Matcher each = COMMIT.matcher(all.toString()); each.find(); ) {
      result.add(each.group(1));
    }
    return result;
  }

  /**
   * A request for rows of the table.
   *
   * @param where their conditions, see {@link Conditions}
   */
  public Request request(List<Request.Column> columns, ArrayNode where) {
    return Request.of(table(), instants(), options(), columns, where);
  }

  /** The names of the columns, without those that Spark makes for each file. */
  Set<String> names() {
    return new HashSet<>(List.of(relation.schema().fieldNames()));
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
    Map<String, Method> known = METHODS.get(object.getClass());
    try {
      Method found = known.get(method);
      if (found == null) {
        found = object.getClass().getMethod(method);
        known.put(method, found);
      }
      return found.invoke(object);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException("This release of Hudi has no " + method + "()", error);
    }
  }
}
