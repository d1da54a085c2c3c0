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
 * What the service asks of Catalyst's plans, each answer one text of JSON: to ask for every node,
 * child and attribute on its own takes most of the time that looking at a query takes. Texts are
 * compressed, since Py4J sends 8 KiB at once: what is longer waits for the first part to be
 * acknowledged, 40 ms on Linux (Nagle's algorithm).
 *
 * <p>Janino compiles this, which Spark has for the code that it generates: no lambdas, and no
 * generic types of Scala's. Of Hudi's classes none is named, since a session may have none.
 */
public final class PlanReader {
  private final ObjectMapper json = new ObjectMapper();

  /** What an analyzed plan reads: the base paths of Hudi tables; and whether it calls Python. */
  public byte[] sources(LogicalPlan plan) throws Exception {
    Map found = new LinkedHashMap();
    found.put("calls_python", Boolean.valueOf(plan.containsPattern(TreePattern.PYTHON_UDF())));
    found.put("tables", tables(plan));
    return written(found);
  }

  /** The nodes of a plan in the order of a walk that takes a node before its children. */
  public byte[] nodes(LogicalPlan plan) throws Exception {
    List found = new ArrayList();
    for (Object each : walked(plan)) {
      LogicalPlan node = (LogicalPlan) each;
      Map told = new LinkedHashMap();
      told.put("kind", node.getClass().getName());
      told.put("children", Integer.valueOf(node.children().size()));
      told.put("has_subquery", Boolean.valueOf(node.containsPattern(TreePattern.PLAN_EXPRESSION())));
      told.put("has_join", Boolean.valueOf(node.containsPattern(TreePattern.JOIN())));
      told.put("table", table(node));
      told.put("functions", node instanceof Aggregate ? functions((Aggregate) node) : null);
      told.put("indeterminate", indeterminate(node));
      found.add(told);
    }
    return written(found);
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
    return asked(asked(location, "metaClient"), "getBasePath").toString();
  }

  /**
   * What a plan asks of a leaf that reads a Hudi table.
   *
   * @param filter the place of the Filter right above it; negative if there is none
   * @param above the place of the node above these that tells which columns are needed; negative if
   *     all are
   */
  public byte[] asked(LogicalPlan plan, int relation, int filter, int above) throws Exception {
    List nodes = walked(plan);
    Map found = new LinkedHashMap();
    found.put("relation", described((LogicalRelation) nodes.get(relation)));
    if (filter >= 0) {
      Expression condition = ((Filter) nodes.get(filter)).condition();
      // As SQL all Python functions have one name; the other text may leave out values.
      found.put("filter", condition.toString() + "\n" + condition.sql());
      found.put("condition", described(condition));
    }
    if (above >= 0) {
      List ids = ids(((LogicalPlan) nodes.get(above)).references().iterator());
      if (filter >= 0) {
        ids.addAll(ids(((LogicalPlan) nodes.get(filter)).references().iterator()));
      }
      found.put("ids", ids);
    }
    return written(found);
  }

  /** A leaf that reads a Hudi table. */
  public byte[] relation(LogicalRelation relation) throws Exception {
    return written(described(relation));
  }

  /** A condition. */
  public byte[] condition(Expression condition) throws Exception {
    return written(described(condition));
  }

  /** A node's own expressions of which Catalyst says that they are not deterministic, as SQL. */
  private static List indeterminate(LogicalPlan node) {
    List found = new ArrayList();
    if (node.deterministic()) {
      return found; // nor is any below it
    }
    scala.collection.Iterator expressions = node.expressions().iterator();
    while (expressions.hasNext()) {
      Expression each = (Expression) expressions.next();
      if (!each.deterministic()) {
        found.add(each.sql());
      }
    }
    return found;
  }

  /** An answer. */
  public byte[] written(Object found) throws Exception {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    Deflater fast = new Deflater(Deflater.BEST_SPEED);
    try {
      OutputStream compressed = new DeflaterOutputStream(bytes, fast);
      json.writeValue(compressed, found);
      compressed.close();
    } finally {
      fast.end();
    }
    return bytes.toByteArray();
  }

  private static List walked(LogicalPlan plan) {
    List found = new ArrayList();
    walk(plan, found);
    return found;
  }

  private static void walk(LogicalPlan node, List found) {
    found.add(node);
    scala.collection.Iterator children = node.children().iterator();
    while (children.hasNext()) {
      walk((LogicalPlan) children.next(), found);
    }
  }

  private List tables(LogicalPlan plan) throws Exception {
    List found = new ArrayList();
    addTables(plan, found);
    if (plan.containsPattern(TreePattern.PLAN_EXPRESSION())) {
      scala.collection.Iterator plans = plan.subqueriesAll().iterator();
      while (plans.hasNext()) {
        addTables((LogicalPlan) plans.next(), found);
      }
    }
    return found;
  }

  private void addTables(LogicalPlan plan, List found) throws Exception {
    scala.collection.Iterator leaves = plan.collectLeaves().iterator();
    while (leaves.hasNext()) {
      String path = table((LogicalPlan) leaves.next());
      if (path != null) {
        found.add(path);
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
    Object metadata = asked(files.location(), "metaClient");
    Object commits = asked(asked(metadata, "getActiveTimeline"), "getCommitsTimeline");
    Map found = new LinkedHashMap();
    found.put("table", asked(metadata, "getBasePath").toString());
    found.put("location", files.location().getClass().getName());
    found.put("streaming", Boolean.valueOf(relation.isStreaming()));
    Map options = new LinkedHashMap();
    scala.collection.Iterator entries = files.options().iterator();
    while (entries.hasNext()) {
      scala.Tuple2 each = (scala.Tuple2) entries.next();
      options.put(each._1(), each._2());
    }
    found.put("options", options);
    List names = new ArrayList();
    List types = new ArrayList();
    scala.collection.Iterator attributes = relation.output().iterator();
    while (attributes.hasNext()) {
      Attribute each = (Attribute) attributes.next();
      names.add(each.name());
      types.add(each.dataType().json());
    }
    found.put("names", names);
    found.put("types", types);
    found.put("ids", ids(relation.output().iterator()));
    found.put("commits", asked(asked(commits, "filterCompletedInstants"), "getInstants").toString());
    return found;
  }

  private static Map described(Expression condition) {
    Map found = new LinkedHashMap();
    found.put("nodes", written(condition));
    List values = new ArrayList();
    scala.collection.Iterator leaves = condition.collectLeaves().iterator();
    while (leaves.hasNext()) {
      Object each = leaves.next();
      Object value = each instanceof Literal ? ((Literal) each).value() : null;
      // Days and microseconds; Catalyst's own JSON has them as local time.
      values.add(value instanceof Number ? value.toString() : null);
    }
    found.put("values", values);
    return found;
  }

  /** As Catalyst writes it; null of what it cannot write. */
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
    List found = new ArrayList();
    scala.collection.Iterator columns = node.aggregateExpressions().iterator();
    while (columns.hasNext()) {
      addFunctions((Expression) columns.next(), found);
    }
    return found;
  }

  private static void addFunctions(Expression expression, List found) {
    if (expression instanceof AggregateExpression) {
      Object function = ((AggregateExpression) expression).aggregateFunction();
      found.add(function.getClass().getName());
      return;
    }
    scala.collection.Iterator children = expression.children().iterator();
    while (children.hasNext()) {
      addFunctions((Expression) children.next(), found);
    }
  }

  /** The numbers of the expression ids of attributes. */
  public static List ids(scala.collection.Iterator attributes) {
    List found = new ArrayList();
    while (attributes.hasNext()) {
      found.add(Long.valueOf(((Attribute) attributes.next()).exprId().id()));
    }
    return found;
  }

  private static Object asked(Object object, String method) throws Exception {
    return object.getClass().getMethod(method).invoke(object);
  }
}
