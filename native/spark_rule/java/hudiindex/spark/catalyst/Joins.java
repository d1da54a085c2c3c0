package hudiindex.spark.catalyst;

import hudiindex.spark.Scala;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Exists;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InSubquery;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.Cross$;
import org.apache.spark.sql.catalyst.plans.ExistenceJoin;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.LeftOuter$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Distinct;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.plans.logical.WindowGroupLimit;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampType;
import scala.collection.Seq;

/**
 * Finds the joins of a plan in which one leaf needs no other rows than those with a key that
 * another leaf has. IN and EXISTS, which are still conditions where the rule runs, count as joins.
 */
final class Joins {
  /** Operators that drop or order rows, each row on its own. */
  private static final Set<Class<?>> ROW_BY_ROW =
      Set.of(
          Filter.class,
          Sort.class,
          SubqueryAlias.class,
          Generate.class,
          Repartition.class,
          RepartitionByExpression.class,
          RebalancePartitions.class);

  /** More operators that give an attribute no value that it does not have below. */
  private static final Set<Class<?>> CHOOSES_ROWS =
      Set.of(
          GlobalLimit.class,
          LocalLimit.class,
          Offset.class,
          Window.class,
          WindowGroupLimit.class,
          Distinct.class);

  /** A row of this side without a partner on the other is in no row of the join. */
  private static final Set<Class<?>> LEFT_NEEDS_RIGHT =
      Set.of(Inner$.class, Cross$.class, LeftSemi$.class, RightOuter$.class);

  private static final Set<Class<?>> RIGHT_NEEDS_LEFT =
      Set.of(
          Inner$.class,
          Cross$.class,
          LeftSemi$.class,
          LeftOuter$.class,
          LeftAnti$.class,
          ExistenceJoin.class);

  /**
   * Dropping a row of this side drops only the rows of the join that contain it: no row of the
   * right side is left over that would be in the join alone.
   */
  private static final Set<Class<?>> LEFT_ON_ITS_OWN = RIGHT_NEEDS_LEFT;

  private static final Set<Class<?>> RIGHT_ON_ITS_OWN =
      Set.of(Inner$.class, Cross$.class, RightOuter$.class);

  private final List<Link> links = new ArrayList<>();

  private Joins() {}

  /**
   * A leaf of a plan, or an {@link Indexed}, and one of its attributes.
   *
   * @param filter right above it; null if there is none
   * @param scan of which it is the relation; empty if it is none
   */
  record Leaf(LogicalPlan node, Filter filter, Optional<HudiScan> scan, Attribute attribute) {}

  /**
   * A leaf that needs no other rows than those with one of the values that another leaf has.
   *
   * @param orNull whether it needs those with NULL, too: {@code <=>} joins them
   */
  record Link(Leaf giving, Leaf taking, boolean orNull) {}

  /** The links of a plan, those of its upper joins first. */
  static List<Link> links(LogicalPlan plan) {
    Joins joins = new Joins();
    joins.addBelow(plan);
    return joins.links;
  }

  private void addBelow(LogicalPlan node) {
    if (node instanceof Indexed || Descent.reason(node).isPresent()) {
      return;
    }
    if (node instanceof Join join && join.condition().isDefined()) {
      for (Expression each : Conditions.conjuncts(join.condition().get())) {
        add(each, join.left(), join.right(), join.joinType().getClass());
      }
    }
    if (node instanceof Filter filter && SubqueryExpression.hasSubquery(filter.condition())) {
      for (Expression each : Conditions.conjuncts(filter.condition())) {
        addSubqueries(each, filter.child());
      }
    }
    if (node instanceof Project project) {
      for (NamedExpression each : Scala.list(project.projectList())) {
        addNested((Expression) each, project.child());
      }
    }
    Scala.list(node.children()).forEach(this::addBelow);
  }

  /** Of a conjunct. NOT IN is none of these: it looks for NULL. */
  private void addSubqueries(Expression conjunct, LogicalPlan outer) {
    if (conjunct instanceof InSubquery || conjunct instanceof Exists) {
      addSubquery(conjunct, outer, LeftSemi$.class);
    } else if (conjunct instanceof Not not && not.child() instanceof Exists) {
      addSubquery(not.child(), outer, LeftAnti$.class);
    } else {
      addNested(conjunct, outer);
    }
  }

  private void addNested(Expression expression, LogicalPlan outer) {
    if (expression instanceof InSubquery || expression instanceof Exists) {
      addSubquery(expression, outer, ExistenceJoin.class);
    } else if (!(expression instanceof Not)) {
      Scala.list(expression.children()).forEach(each -> addNested(each, outer));
    }
  }

  private void addSubquery(Expression test, LogicalPlan outer, Class<? extends JoinType> kind) {
    LogicalPlan inner;
    Seq<Expression> correlated;
    if (test instanceof InSubquery in) {
      inner = in.query().plan();
      correlated = in.query().joinCond();
      List<Expression> values = Scala.list(in.values());
      List<Attribute> columns = Scala.list(inner.output());
      for (int place = 0; place < values.size(); place++) {
        add(new EqualTo(values.get(place), columns.get(place)), outer, inner, kind);
      }
    } else {
      inner = ((Exists) test).plan();
      correlated = ((Exists) test).joinCond();
    }
    for (Expression condition : Scala.list(correlated)) {
      Conditions.conjuncts(condition).forEach(each -> add(each, outer, inner, kind));
    }
  }

  private void add(Expression condition, LogicalPlan left, LogicalPlan right, Class<?> kind) {
    boolean orNull = condition instanceof EqualNullSafe;
    if (!((orNull || condition instanceof EqualTo)
        && condition instanceof BinaryComparison equal
        && equal.left() instanceof Attribute one
        && equal.right() instanceof Attribute other
        && one.dataType().equals(other.dataType())
        && isPlain(one.dataType()))) {
      return;
    }
    boolean inOrder = left.outputSet().contains(one);
    Attribute ofLeft = inOrder ? one : other;
    Attribute ofRight = inOrder ? other : one;
    if (!left.outputSet().contains(ofLeft) || !right.outputSet().contains(ofRight)) {
      return;
    }
    // Random numbers, say, of a CTE that is computed once for several places: of fewer rows they
    // would be others.
    if (RIGHT_NEEDS_LEFT.contains(kind) && right.deterministic()) {
      addLink(left, ofLeft, right, ofRight, orNull);
    }
    if (LEFT_NEEDS_RIGHT.contains(kind) && left.deterministic()) {
      addLink(right, ofRight, left, ofLeft, orNull);
    }
  }

  private void addLink(
      LogicalPlan giving, Attribute key, LogicalPlan taking, Attribute needed, boolean orNull) {
    Optional<Leaf> target = leaf(taking, needed, true);
    Optional<Leaf> source = target.isEmpty() ? target : leaf(giving, key, false);
    source.ifPresent(each -> links.add(new Link(each, target.get(), orNull)));
  }

  /** The leaf that an attribute of a plan comes from, with all its values but NULL. */
  private static Optional<Leaf> leaf(LogicalPlan plan, Attribute attribute, boolean takes) {
    if (plan instanceof Indexed || plan.children().isEmpty()) {
      return ofOutput(plan, attribute).map(own -> new Leaf(plan, null, HudiScan.at(plan), own));
    }
    if (takes && Descent.reason(plan).isPresent()) {
      return Optional.empty();
    }
    Optional<HudiScan> scan = HudiScan.at(plan);
    Optional<Step> step = takes ? taken(plan, attribute) : given(plan, attribute);
    Filter filter = plan instanceof Filter some ? some : null;
    return step.flatMap(below -> leaf(below.plan(), below.attribute(), takes))
        .map(found -> above(found, filter, scan));
  }

  private static Leaf above(Leaf leaf, Filter filter, Optional<HudiScan> scan) {
    boolean isChild = filter != null && filter.child() == leaf.node();
    return new Leaf(
        leaf.node(), isChild ? filter : leaf.filter(), scan.or(leaf::scan), leaf.attribute());
  }

  private record Step(LogicalPlan plan, Attribute attribute) {}

  /** The child with all values that an attribute has but NULL, and what the attribute is there. */
  private static Optional<Step> given(LogicalPlan plan, Attribute attribute) {
    if (plan instanceof Join join) {
      return either(join, attribute, Optional.of(join.left()), Optional.of(join.right()));
    }
    boolean keeps = ROW_BY_ROW.contains(plan.getClass()) || CHOOSES_ROWS.contains(plan.getClass());
    return keeps ? onlyChild(plan, attribute) : named(plan, attribute);
  }

  /**
   * The child from which rows with other values of an attribute may be left out, since they would
   * be missing nowhere else.
   */
  private static Optional<Step> taken(LogicalPlan plan, Attribute attribute) {
    if (plan instanceof Join join) {
      Class<?> kind = join.joinType().getClass();
      return either(
          join,
          attribute,
          LEFT_ON_ITS_OWN.contains(kind) ? Optional.of(join.left()) : Optional.empty(),
          RIGHT_ON_ITS_OWN.contains(kind) ? Optional.of(join.right()) : Optional.empty());
    }
    return ROW_BY_ROW.contains(plan.getClass())
        ? onlyChild(plan, attribute)
        : named(plan, attribute);
  }

  private static Optional<Step> either(
      Join join, Attribute attribute, Optional<LogicalPlan> left, Optional<LogicalPlan> right) {
    boolean isLeft = join.left().outputSet().contains(attribute);
    return (isLeft ? left : right).flatMap(side -> step(side, attribute));
  }

  private static Optional<Step> onlyChild(LogicalPlan plan, Attribute attribute) {
    return step(plan.children().head(), attribute);
  }

  private static Optional<Step> step(LogicalPlan child, Attribute attribute) {
    return ofOutput(child, attribute).map(own -> new Step(child, own));
  }

  /** Below a Project or an Aggregate that has the attribute as a column, or groups by it. */
  private static Optional<Step> named(LogicalPlan plan, Attribute attribute) {
    Seq<NamedExpression> columns;
    if (plan instanceof Project project) {
      columns = project.projectList();
    } else if (plan instanceof Aggregate aggregate) {
      columns = aggregate.aggregateExpressions();
    } else {
      return Optional.empty();
    }
    return Scala.list(columns).stream()
        .filter(each -> each.exprId().equals(attribute.exprId()))
        .map(each -> each instanceof Alias alias ? alias.child() : (Expression) each)
        .findFirst()
        .flatMap(source -> source instanceof Attribute own ? Optional.of(own) : Optional.empty())
        .flatMap(own -> onlyChild(plan, own));
  }

  private static Optional<Attribute> ofOutput(LogicalPlan plan, Attribute attribute) {
    return Scala.list(plan.output()).stream()
        .filter(each -> each.exprId().equals(attribute.exprId()))
        .findFirst();
  }

  private static boolean isPlain(DataType type) {
    return type instanceof StringType
        || type instanceof ByteType
        || type instanceof ShortType
        || type instanceof IntegerType
        || type instanceof LongType
        || type instanceof DateType
        || type instanceof TimestampType
        || type instanceof BinaryType
        || type instanceof DecimalType;
  }
}
