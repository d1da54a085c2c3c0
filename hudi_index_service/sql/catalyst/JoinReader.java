import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;

/**
 * Finds the leaves of an optimized plan whose joins can take keys from other leaves. Catalyst's
 * expression ids identify attributes. Compiled by Janino, and uses `PlanReader.java`.
 */
public final class JoinReader {
  private final PlanReader reader = new PlanReader();
  private static final String LOGICAL = "org.apache.spark.sql.catalyst.plans.logical.";

  // Operators that drop or order rows, each row on its own.
  private static final Set ROW_BY_ROW =
      set("Filter Sort SubqueryAlias Generate Repartition RepartitionByExpression"
          + " RebalancePartitions");
  // More operators that give an attribute no value that it does not have below.
  private static final Set CHOOSES_ROWS =
      set("GlobalLimit LocalLimit Offset Window WindowGroupLimit Distinct");
  // A row of this side without a partner on the other is in no row of the join.
  private static final Set LEFT_NEEDS_RIGHT = set("Inner Cross LeftSemi RightOuter");
  private static final Set RIGHT_NEEDS_LEFT =
      set("Inner Cross LeftSemi LeftOuter LeftAnti ExistenceJoin");
  // Dropping a row of this side drops only the rows of the join that contain it.
  private static final Set LEFT_ON_ITS_OWN =
      set("Inner Cross LeftSemi LeftOuter LeftAnti ExistenceJoin");
  private static final Set RIGHT_ON_ITS_OWN = set("Inner Cross RightOuter");
  private static final Set TYPES =
      set("string tinyint smallint int bigint date timestamp binary");

  /**
   * Of a plan without its sub-queries, `leaves`: the class of each, the ids of its attributes, and
   * the Hudi table that it reads; and `links`: the place among the leaves of the one that gives
   * keys, the id of its attribute, and both of the one that needs no other rows than those with one
   * of these keys.
   */
  public byte[] read(LogicalPlan plan) throws Exception {
    List leaves = leaves(plan);
    List described = new ArrayList();
    for (Object each : leaves) {
      Map leaf = new LinkedHashMap();
      leaf.put("kind", each.getClass().getName());
      leaf.put("ids", ids((LogicalPlan) each));
      leaf.put("table", reader.table((LogicalPlan) each));
      described.add(leaf);
    }
    List links = new ArrayList();
    addLinks(plan, leaves, links);
    Map fields = new LinkedHashMap();
    fields.put("leaves", described);
    fields.put("links", links);
    return reader.written(fields);
  }

  /** The leaf at a place among those of a plan. */
  public LogicalPlan leaf(LogicalPlan plan, int place) {
    return (LogicalPlan) leaves(plan).get(place);
  }

  private static List leaves(LogicalPlan plan) {
    List nodes = new ArrayList();
    scala.collection.Iterator leaves = plan.collectLeaves().iterator();
    while (leaves.hasNext()) {
      nodes.add(leaves.next());
    }
    return nodes;
  }

  private static void addLinks(LogicalPlan node, List leaves, List links) {
    if (node instanceof Join && ((Join) node).condition().isDefined()) {
      Join join = (Join) node;
      addLinks(join, (Expression) join.condition().get(), leaves, links);
    }
    scala.collection.Iterator children = node.children().iterator();
    while (children.hasNext()) {
      addLinks((LogicalPlan) children.next(), leaves, links);
    }
  }

  private static void addLinks(Join join, Expression condition, List leaves, List links) {
    if (condition instanceof And) {
      addLinks(join, ((And) condition).left(), leaves, links);
      addLinks(join, ((And) condition).right(), leaves, links);
      return;
    }
    if (!(condition instanceof EqualTo)) {
      return;
    }
    Expression one = ((EqualTo) condition).left();
    Expression other = ((EqualTo) condition).right();
    if (!(one instanceof AttributeReference && other instanceof AttributeReference)) {
      return;
    }
    String type = one.dataType().catalogString();
    boolean plain = TYPES.contains(type) || type.startsWith("decimal(");
    if (!plain || !type.equals(other.dataType().catalogString())) {
      return;
    }
    long first = id(one);
    long second = id(other);
    if (!has(join.left(), first)) {
      long swapped = first;
      first = second;
      second = swapped;
    }
    if (!has(join.left(), first) || !has(join.right(), second)) {
      return;
    }
    // Random numbers, say, of a CTE that is computed once for several places: of fewer rows they
    // would be others.
    String kind = kind(join);
    if (RIGHT_NEEDS_LEFT.contains(kind) && join.right().deterministic()) {
      addLink(join.left(), first, join.right(), second, leaves, links);
    }
    if (LEFT_NEEDS_RIGHT.contains(kind) && join.left().deterministic()) {
      addLink(join.right(), second, join.left(), first, leaves, links);
    }
  }

  private static void addLink(
      LogicalPlan giving, long key, LogicalPlan taking, long attribute, List leaves, List links) {
    Object[] target = leaf(taking, attribute, true);
    Object[] source = target == null ? null : leaf(giving, key, false);
    if (source != null) {
      links.add(
          Arrays.asList(
              new Object[] {
                Integer.valueOf(place(leaves, source[0])), source[1],
                Integer.valueOf(place(leaves, target[0])), target[1]
              }));
    }
  }

  /** Leaves are compared as objects: equal ones may occur in several places. */
  private static int place(List leaves, Object leaf) {
    int place = 0;
    while (leaves.get(place) != leaf) {
      place++;
    }
    return place;
  }

  /** The leaf whose attribute it is, and the id that it has there; null if none is known. */
  private static Object[] leaf(LogicalPlan plan, long attribute, boolean takes) {
    while (plan != null && !plan.children().isEmpty()) {
      if (plan instanceof Project || plan instanceof Aggregate) {
        NamedExpression column = column(plan, attribute);
        Object source = column instanceof Alias ? ((Alias) column).child() : column;
        if (!(source instanceof AttributeReference)) {
          return null;
        }
        attribute = id(source);
        plan = (LogicalPlan) plan.children().head();
      } else {
        plan = takes ? taken(plan, attribute) : given(plan, attribute);
      }
    }
    boolean exists = plan != null && has(plan, attribute);
    return exists ? new Object[] {plan, Long.valueOf(attribute)} : null;
  }

  /** What has an id in a Project or an Aggregate; null if nothing has. */
  private static NamedExpression column(LogicalPlan plan, long id) {
    scala.collection.Iterator columns =
        plan instanceof Project
            ? ((Project) plan).projectList().iterator()
            : ((Aggregate) plan).aggregateExpressions().iterator();
    while (columns.hasNext()) {
      NamedExpression each = (NamedExpression) columns.next();
      if (each.exprId().id() == id) {
        return each;
      }
    }
    return null;
  }

  /** The child with all values that the attribute has but NULL. */
  private static LogicalPlan given(LogicalPlan plan, long attribute) {
    if (plan instanceof Join) {
      LogicalPlan left = ((Join) plan).left();
      return has(left, attribute) ? left : only(((Join) plan).right(), attribute);
    }
    boolean keeps = ROW_BY_ROW.contains(name(plan)) || CHOOSES_ROWS.contains(name(plan));
    return keeps ? onlyChild(plan, attribute) : null;
  }

  /**
   * The child from which rows with other values of the attribute may be left out, since they would
   * be missing nowhere else.
   */
  private static LogicalPlan taken(LogicalPlan plan, long attribute) {
    if (plan instanceof Join) {
      LogicalPlan left = ((Join) plan).left();
      if (has(left, attribute)) {
        return LEFT_ON_ITS_OWN.contains(kind((Join) plan)) ? left : null;
      }
      boolean alone = RIGHT_ON_ITS_OWN.contains(kind((Join) plan));
      return alone ? only(((Join) plan).right(), attribute) : null;
    }
    return ROW_BY_ROW.contains(name(plan)) ? onlyChild(plan, attribute) : null;
  }

  private static LogicalPlan onlyChild(LogicalPlan plan, long attribute) {
    return only((LogicalPlan) plan.children().head(), attribute);
  }

  private static LogicalPlan only(LogicalPlan plan, long attribute) {
    return has(plan, attribute) ? plan : null;
  }

  private static boolean has(LogicalPlan plan, long attribute) {
    return ids(plan).contains(Long.valueOf(attribute));
  }

  private static List ids(LogicalPlan plan) {
    return PlanReader.ids(plan.output().iterator());
  }

  private static long id(Object attribute) {
    return ((Attribute) attribute).exprId().id();
  }

  /** The name of a logical operator's class; empty of one that is not Spark's. */
  private static String name(LogicalPlan plan) {
    String name = plan.getClass().getName();
    return name.startsWith(LOGICAL) ? name.substring(LOGICAL.length()) : "";
  }

  private static String kind(Join join) {
    return join.joinType().getClass().getSimpleName().replace("$", "");
  }

  private static Set set(String names) {
    return new HashSet(Arrays.asList(names.split(" ")));
  }
}
