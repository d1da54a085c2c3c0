package hudiindex.spark.fulltext;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hudiindex.spark.Json;
import hudiindex.spark.Scala;
import hudiindex.spark.Unchecked;
import hudiindex.spark.catalyst.FullTextCall;
import hudiindex.spark.catalyst.HudiFiles;
import hudiindex.spark.catalyst.Parts;
import hudiindex.spark.source.FullText;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Window;

/** Binds {@code score()} to the one search of its query block, and to all texts of the snapshot. */
final class Scores {
  /**
   * Nodes of a query block without GROUP BY, which pass rows on one by one; a table, view or
   * sub-query in FROM has an alias.
   */
  private static final Set<Class<?>> BLOCK =
      Set.of(Project.class, Filter.class, Join.class, Sort.class, Window.class, Generate.class);

  private final Origins origins;
  private final FullText fullText;

  Scores(Origins origins, FullText fullText) {
    this.origins = origins;
    this.fullText = fullText;
  }

  /**
   * A plan whose searches are bound, with its scores bound, too; but for those of searches that are
   * not.
   *
   * @param around the nodes around the sub-query, the nearest first
   */
  LogicalPlan bound(LogicalPlan node, List<LogicalPlan> around) {
    if (!Calls.mayBeIn(node)) {
      return node;
    }
    List<LogicalPlan> scope = Searches.scope(node, around);
    LogicalPlan below = Parts.withChildren(node, each -> bound(each, around));
    LogicalPlan within = Parts.withSubqueries(below, each -> bound(each, scope));
    List<UnboundCall> scores = Calls.unbound(within, call -> !call.isSearch());
    if (scores.isEmpty()) {
      return within;
    }
    if (scores.stream().anyMatch(each -> !each.children().isEmpty())) {
      throw Unchecked.thrown(Refusals.scoreOfArguments());
    }
    return score(node, scope).map(each -> scored(within, each)).orElse(within);
  }

  private record Search(FullTextCall call, LogicalPlan node) {}

  /** The score of the search in the block that ends in a node; empty if that is not bound. */
  private Optional<FullTextCall> score(LogicalPlan node, List<LogicalPlan> scope) {
    Map<Expression, Search> searches = new LinkedHashMap<>();
    if (addSearches(node, searches)) {
      return Optional.empty();
    }
    if (searches.isEmpty()) {
      throw Unchecked.thrown(Refusals.noSearch());
    }
    if (searches.size() > 1) {
      throw Unchecked.thrown(Refusals.severalSearches(searches.size()));
    }
    Search search = searches.values().iterator().next();
    List<LogicalPlan> around = Searches.scope(search.node(), scope.subList(1, scope.size()));
    Expression text = search.call().child();
    try {
      return origins
          .of(text, around)
          .map(all -> new FullTextCall(text, scoring(search.call(), all), fullText));
    } catch (Origins.NoColumn error) { // although the search is bound
      throw Unchecked.thrown(Refusals.noTextToScore());
    }
  }

  /** Adds the searches of a block by their meaning. Returns whether one is not bound yet. */
  private static boolean addSearches(LogicalPlan node, Map<Expression, Search> into) {
    if (!Calls.unbound(node, UnboundCall::isSearch).isEmpty()) {
      return true;
    }
    for (FullTextCall each : Calls.searches(node)) {
      into.putIfAbsent(each.canonicalized(), new Search(each, node));
    }
    boolean result = false;
    for (LogicalPlan each : Scala.list(node.children())) {
      result |= BLOCK.contains(each.getClass()) && addSearches(each, into);
    }
    return result;
  }

  private String scoring(FullTextCall search, List<Origins.Origin> all) {
    if (all.size() > 1) {
      throw Unchecked.thrown(Refusals.scoreOfUnion());
    }
    HudiFiles files = all.get(0).files();
    if (!files.isSnapshot()) {
      throw Unchecked.thrown(Refusals.noSnapshotToScore());
    }
    ObjectNode request = Json.object().put("function", FullTextCall.SCORE);
    request.set("search", search.json());
    request.set("relation", files.request(List.of(), Json.array()).json());
    return fullText.bound(request.toString()).get("call").toString();
  }

  /**
   * A node with its scores bound, below a Project that hides the columns that are added for them.
   */
  private LogicalPlan scored(LogicalPlan node, FullTextCall score) {
    List<Attribute> texts = attributes(score);
    if (node instanceof Sort sort) {
      return sorted(sort, score, texts);
    }
    List<LogicalPlan> children =
        Scala.list(node.children()).stream().map(each -> withColumns(each, texts)).toList();
    require(texts, children);
    LogicalPlan below = node.withNewChildren(Scala.seq(children));
    LogicalPlan result = Calls.replaced(below, each -> isScore(each) ? score : each);
    return node instanceof Project || node instanceof Aggregate
        ? result
        : projected(Scala.list(node.output()), result);
  }

  /** The order by a column, which is computed where the texts are. */
  private static LogicalPlan sorted(Sort sort, FullTextCall score, List<Attribute> texts) {
    boolean isProjected = sort.child() instanceof Project;
    LogicalPlan rows = isProjected ? sort.child().children().head() : sort.child();
    LogicalPlan below = withColumns(rows, texts);
    require(texts, List.of(below));
    Alias key = Parts.named(score, FullTextCall.SCORE);
    List<NamedExpression> columns =
        new ArrayList<>(
            sort.child() instanceof Project project
                ? Scala.list(project.projectList())
                : Scala.list(rows.output()));
    columns.add(key);
    LogicalPlan keyed =
        sort.withNewChildren(Scala.seq(List.of(new Project(Scala.seq(columns), below))));
    return projected(
        Scala.list(sort.output()),
        Calls.replaced(keyed, each -> isScore(each) ? key.toAttribute() : each));
  }

  private static boolean isScore(Expression expression) {
    return expression instanceof UnboundCall call && !call.isSearch();
  }

  private static Project projected(List<? extends NamedExpression> columns, LogicalPlan rows) {
    return new Project(Scala.<NamedExpression>seq(columns), rows);
  }

  private static List<Attribute> attributes(Expression expression) {
    return Scala.list(expression.references().toSeq());
  }

  private static void require(List<Attribute> columns, List<LogicalPlan> among) {
    for (Attribute column : columns) {
      if (among.stream().noneMatch(each -> each.outputSet().contains(column))) {
        throw Unchecked.thrown(Refusals.noTextToScore());
      }
    }
  }

  /** A node with columns from below it, except those that are lost on the way. */
  private static LogicalPlan withColumns(LogicalPlan node, List<Attribute> columns) {
    List<Attribute> missing =
        columns.stream().filter(each -> !node.outputSet().contains(each)).toList();
    if (missing.isEmpty()) {
      return node;
    }
    LogicalPlan below = Parts.withChildren(node, each -> withColumns(each, missing));
    if (!(below instanceof Project project)) {
      return below;
    }
    List<NamedExpression> all = new ArrayList<>(Scala.list(project.projectList()));
    missing.stream().filter(each -> project.child().outputSet().contains(each)).forEach(all::add);
    return projected(all, project.child());
  }
}
