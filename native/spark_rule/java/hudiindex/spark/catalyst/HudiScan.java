package hudiindex.spark.catalyst;

import com.fasterxml.jackson.databind.node.ArrayNode;
import hudiindex.spark.Scala;
import hudiindex.spark.source.Request;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.AttributeSet$;
import org.apache.spark.sql.catalyst.expressions.Exists;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InSubquery;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.Seq;

/**
 * A part of a plan that reads one Hudi table: {@code [Project]([Filter](relation))}. Where the rule
 * runs, Spark has pushed conditions and columns down to there.
 *
 * <p>Full-text calls on columns of the table become columns, which whoever reads the rows computes.
 *
 * @param top the topmost node
 * @param filter the conditions on the table; null if there are none
 * @param relation the leaf
 * @param files what it reads
 * @param calls the calls in both nodes, each with its column
 */
record HudiScan(
    LogicalPlan top,
    Filter filter,
    LogicalRelation relation,
    HudiFiles files,
    Map<FullTextCall, Alias> calls) {
  /** The scan whose topmost node this is. */
  static Optional<HudiScan> at(LogicalPlan top) {
    LogicalPlan below = top instanceof Project project ? project.child() : top;
    Filter filter = below instanceof Filter some ? some : null;
    LogicalPlan leaf = filter == null ? below : filter.child();
    return HudiFiles.of(leaf)
        .map(
            files ->
                new HudiScan(
                    top,
                    filter,
                    (LogicalRelation) leaf,
                    files,
                    calls(top, filter, new Conditions(Scala.list(leaf.output())))));
  }

  private static Map<FullTextCall, Alias> calls(
      LogicalPlan top, Filter filter, Conditions conditions) {
    Map<FullTextCall, Alias> result = new LinkedHashMap<>();
    for (LogicalPlan node : filter == null || filter == top ? List.of(top) : List.of(filter, top)) {
      for (FullTextCall each : FullTextCalls.in(node)) {
        if (conditions.names(each.child()).isPresent()) {
          result.computeIfAbsent(each, call -> Parts.named(call, "computed_" + result.size()));
        }
      }
    }
    return result;
  }

  /** The attributes that the nodes above the relation need, in its order. */
  List<Attribute> columns() {
    List<Attribute> all = List.copyOf(Scala.list(relation.output()));
    if (!(top instanceof Project)) {
      return all;
    }
    AttributeSet needed = withColumns(top).references();
    AttributeSet tested =
        filter == null ? AttributeSet$.MODULE$.empty() : withColumns(filter).references();
    return all.stream().filter(each -> needed.contains(each) || tested.contains(each)).toList();
  }

  /** A node with columns in the place of calls. */
  private LogicalPlan withColumns(LogicalPlan node) {
    return calls.isEmpty()
        ? node
        : Parts.withExpressions(
            node,
            each ->
                each instanceof FullTextCall call && calls.containsKey(call)
                    ? (Expression) calls.get(call).toAttribute()
                    : each);
  }

  /** The calls as requests have them, by the numbers of their columns' expression ids. */
  Map<Long, String> computed() {
    Conditions conditions = new Conditions(Scala.list(relation.output()));
    Map<Long, String> result = new LinkedHashMap<>();
    calls.forEach((call, column) -> result.put(column.exprId().id(), conditions.computed(call)));
    return result;
  }

  /** A request for the rows that fulfill its own conditions, as far as they are known. */
  Request request() {
    return request(known());
  }

  /** The same with conditions that are written already. */
  Request request(ArrayNode where) {
    List<Request.Column> columns = new ArrayList<>();
    columns().forEach(each -> columns.add(new Request.Column(each.name(), each.dataType())));
    Map<Long, String> computed = computed();
    for (Alias each : calls.values()) {
      String call = computed.get(each.exprId().id());
      columns.add(new Request.Column(each.name(), each.dataType(), Optional.of(call)));
    }
    return files.request(columns, where);
  }

  /** The conditions that are known, see {@link Conditions#known}. */
  ArrayNode known() {
    List<Expression> conditions = new ArrayList<>(conjuncts());
    conjuncts().forEach(each -> conditions.addAll(ofSubquery(each)));
    return new Conditions(Scala.list(relation.output())).known(conditions);
  }

  /** The conditions on the relation alone that stand in an IN or EXISTS. */
  private List<Expression> ofSubquery(Expression conjunct) {
    if (!(conjunct instanceof InSubquery || conjunct instanceof Exists)) {
      return List.of();
    }
    Seq<Expression> conditions =
        conjunct instanceof InSubquery in ? in.query().joinCond() : ((Exists) conjunct).joinCond();
    return Scala.list(conditions).stream()
        .flatMap(each -> Conditions.conjuncts(each).stream())
        .filter(each -> each.references().subsetOf(relation.outputSet()))
        .toList();
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
    List<NamedExpression> columns = new ArrayList<>(columns());
    columns.addAll(calls.values());
    return new Project(Scala.seq(columns), rows);
  }

  /** The plan with another node in the relation's place. */
  LogicalPlan with(UnaryOperator<LogicalPlan> reader) {
    LogicalPlan rows = reader.apply(ownScan());
    if (filter != null) {
      rows = withColumns(filter).withNewChildren(Scala.seq(List.of(rows)));
    }
    if (top instanceof Project) {
      return withColumns(top).withNewChildren(Scala.seq(List.of(rows)));
    }
    return calls.isEmpty()
        ? rows
        : new Project(Scala.<NamedExpression>seq(Scala.list(top.output())), rows);
  }
}
