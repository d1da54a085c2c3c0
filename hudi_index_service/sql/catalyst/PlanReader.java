import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.Deflater;
import java.util.zip.DeflaterOutputStream;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Describes Catalyst's plans to the service, each response one text of JSON: a call for every node,
 * child and attribute would be most of the time spent on a query. Texts are compressed, since Py4J
 * sends 8 KiB at once: a longer text waits until the first part is acknowledged, 40 ms on Linux
 * (Nagle's algorithm).
 *
 * <p>Compiled by Janino, which Spark ships for its generated code: no lambdas, and no generic types
 * of Scala. No class of Hudi is named, since a session may not have Hudi.
 */
public final class PlanReader {
  private final ObjectMapper json = new ObjectMapper();

  /** The sources of an analyzed plan: the base paths of Hudi tables; whether it calls Python. */
  public byte[] sources(LogicalPlan plan) throws Exception {
    Map fields = new LinkedHashMap();
    fields.put("calls_python", Boolean.valueOf(plan.containsPattern(TreePattern.PYTHON_UDF())));
    fields.put("tables", tables(plan));
    return written(fields);
  }

  /** The nodes of a plan in pre-order. */
  public byte[] nodes(LogicalPlan plan) throws Exception {
    List nodes = new ArrayList();
    for (Object each : walked(plan)) {
      LogicalPlan node = (LogicalPlan) each;
      Map fields = new LinkedHashMap();
      fields.put("kind", node.getClass().getName());
      fields.put("children", Integer.valueOf(node.children().size()));
      fields.put("has_subquery", Boolean.valueOf(node.containsPattern(TreePattern.PLAN_EXPRESSION())));
      fields.put("has_join", Boolean.valueOf(node.containsPattern(TreePattern.JOIN())));
      fields.put("table", table(node));
      fields.put("functions", node instanceof Aggregate ? functions((Aggregate) node) : null);
      fields.put("indeterminate", indeterminate(node));
      nodes.add(fields);
    }
    return written(nodes);
  }

  /** The node at a place in that order. */
  public LogicalPlan node(LogicalPlan plan, int place) {
    return (LogicalPlan) walked(plan).get(place);
  }

  /** The base paths of the Hudi tables that a plan and its sub-queries read. */
  public byte[] tablesIn(LogicalPlan plan) throws Exception {
    return written(tables(plan));
  }

  /** The base path of the Hudi table that a leaf of a plan reads; null if it reads none. */
  public String table(LogicalPlan leaf) throws Exception {
    Object location = location(leaf);
    if (location == null || !location.getClass().getName().startsWith("org.apache.hudi.")) {
      return null;
    }
    return invoke(invoke(location, "metaClient"), "getBasePath").toString();
  }

  /**
   * The request of a plan to a leaf that reads a Hudi table.
   *
   * @param filter the place of the Filter directly above it; negative if there is none
   * @param above the place of the node above these that determines the needed columns; negative if
   *     all are needed
   */
  public byte[] scanRequest(LogicalPlan plan, int relation, int filter, int above) throws Exception {
    List nodes = walked(plan);
    Map fields = new LinkedHashMap();
    fields.put("relation", described((LogicalRelation) nodes.get(relation)));
    if (filter >= 0) {
      Expression condition = ((Filter) nodes.get(filter)).condition();
      // In SQL, all Python functions have one name; the other text may omit values.
      fields.put("filter", condition.toString() + "\n" + condition.sql());
      fields.put("condition", described(condition));
    }
    if (above >= 0) {
      List ids = ids(((LogicalPlan) nodes.get(above)).references().iterator());
      if (filter >= 0) {
        ids.addAll(ids(((LogicalPlan) nodes.get(filter)).references().iterator()));
      }
      fields.put("ids", ids);
    }
    return written(fields);
  }

  /** A leaf that reads a Hudi table. */
  public byte[] relation(LogicalRelation relation) throws Exception {
    return written(described(relation));
  }

  /** A condition. */
  public byte[] condition(Expression condition) throws Exception {
    return written(described(condition));
  }

  /** A node's own expressions that Catalyst calls nondeterministic, as SQL. */
  private static List indeterminate(LogicalPlan node) {
    List texts = new ArrayList();
    if (node.deterministic()) {
      return texts; // all expressions are deterministic
    }
    scala.collection.Iterator expressions = node.expressions().iterator();
    while (expressions.hasNext()) {
      Expression each = (Expression) expressions.next();
      if (!each.deterministic()) {
        texts.add(each.sql());
      }
    }
    return texts;
  }

  /** A response. */
  public byte[] written(Object result) throws Exception {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    Deflater fast = new Deflater(Deflater.BEST_SPEED);
    try {
      OutputStream compressed = new DeflaterOutputStream(bytes, fast);
      json.writeValue(compressed, result);
      compressed.close();
    } finally {
      fast.end();
    }
    return bytes.toByteArray();
  }

  private static List walked(LogicalPlan plan) {
    List nodes = new ArrayList();
    walk(plan, nodes);
    return nodes;
  }

  private static void walk(LogicalPlan node, List nodes) {
    nodes.add(node);
    scala.collection.Iterator children = node.children().iterator();
    while (children.hasNext()) {
      walk((LogicalPlan) children.next(), nodes);
    }
  }

  private List tables(LogicalPlan plan) throws Exception {
    List paths = new ArrayList();
    addTables(plan, paths);
    if (plan.containsPattern(TreePattern.PLAN_EXPRESSION())) {
      scala.collection.Iterator plans = plan.subqueriesAll().iterator();
      while (plans.hasNext()) {
        addTables((LogicalPlan) plans.next(), paths);
      }
    }
    return paths;
  }

  private void addTables(LogicalPlan plan, List paths) throws Exception {
    scala.collection.Iterator leaves = plan.collectLeaves().iterator();
    while (leaves.hasNext()) {
      String path = table((LogicalPlan) leaves.next());
      if (path != null) {
        paths.add(path);
      }
    }
  }

  private static Object location(LogicalPlan leaf) {
    if (!(leaf instanceof LogicalRelation)) {
      return null;
    }
    Object relation = ((LogicalRelation) leaf).relation();
    return relation instanceof HadoopFsRelation ? ((HadoopFsRelation) relation).location() : null;
  }

  private static Map described(LogicalRelation relation) throws Exception {
    HadoopFsRelation files = (HadoopFsRelation) relation.relation();
    Object metadata = invoke(files.location(), "metaClient");
    Object commits = invoke(invoke(metadata, "getActiveTimeline"), "getCommitsTimeline");
    Map fields = new LinkedHashMap();
    fields.put("table", invoke(metadata, "getBasePath").toString());
    fields.put("location", files.location().getClass().getName());
    fields.put("streaming", Boolean.valueOf(relation.isStreaming()));
    Map options = new LinkedHashMap();
    scala.collection.Iterator entries = files.options().iterator();
    while (entries.hasNext()) {
      scala.Tuple2 each = (scala.Tuple2) entries.next();
      options.put(each._1(), each._2());
    }
    fields.put("options", options);
    List names = new ArrayList();
    List types = new ArrayList();
    scala.collection.Iterator attributes = relation.output().iterator();
    while (attributes.hasNext()) {
      Attribute each = (Attribute) attributes.next();
      names.add(each.name());
      types.add(each.dataType().json());
    }
    fields.put("names", names);
    fields.put("types", types);
    fields.put("ids", ids(relation.output().iterator()));
    fields.put("commits", invoke(invoke(commits, "filterCompletedInstants"), "getInstants").toString());
    return fields;
  }

  private static Map described(Expression condition) {
    Map fields = new LinkedHashMap();
    fields.put("nodes", written(condition));
    List values = new ArrayList();
    scala.collection.Iterator leaves = condition.collectLeaves().iterator();
    while (leaves.hasNext()) {
      Object each = leaves.next();
      Object value = each instanceof Literal ? ((Literal) each).value() : null;
      // Days and microseconds; Catalyst's own JSON has them as local time.
      values.add(value instanceof Number ? value.toString() : null);
    }
    fields.put("values", values);
    return fields;
  }

  /** The JSON of Catalyst; null if it cannot write the condition. */
  private static String written(Expression condition) {
    try {
      return condition.toJSON();
    } catch (RuntimeException error) {
      return null;
    } catch (StackOverflowError error) {
      return null;
    }
  }

  /** The classes of the functions that an Aggregate calls. */
  private static List functions(Aggregate node) {
    List names = new ArrayList();
    scala.collection.Iterator columns = node.aggregateExpressions().iterator();
    while (columns.hasNext()) {
      addFunctions((Expression) columns.next(), names);
    }
    return names;
  }

  private static void addFunctions(Expression expression, List names) {
    if (expression instanceof AggregateExpression) {
      Object function = ((AggregateExpression) expression).aggregateFunction();
      names.add(function.getClass().getName());
      return;
    }
    scala.collection.Iterator children = expression.children().iterator();
    while (children.hasNext()) {
      addFunctions((Expression) children.next(), names);
    }
  }

  /** The numbers of the expression ids of attributes. */
  public static List ids(scala.collection.Iterator attributes) {
    List ids = new ArrayList();
    while (attributes.hasNext()) {
      ids.add(Long.valueOf(((Attribute) attributes.next()).exprId().id()));
    }
    return ids;
  }

  private static Object invoke(Object object, String method) throws Exception {
    return object.getClass().getMethod(method).invoke(object);
  }
}
