package hudiindex.spark.catalyst;

import hudiindex.spark.Scala;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedHint;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.Seq;

/**
 * Resolves the hint NO_INDEX, which leaves relations to Spark: those that it names, as join hints
 * name theirs, or without a name all that are below it.
 *
 * <p>A resolution rule: below a hint, relations and aliases have to be resolved, and once all rules
 * have run Spark drops the hints that are left, with a warning.
 */
public final class NoIndexHints extends Rule<LogicalPlan> {
  static final String NAME = "NO_INDEX";

  private final SparkSession session;

  public NoIndexHints(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (!hasHints(plan)) {
      return plan;
    }
    HintedRelations marks = new HintedRelations(session);
    return marks.withMarkedCtes(resolved(plan, marks));
  }

  private static boolean hasHints(LogicalPlan plan) {
    return plan.containsPattern(TreePattern.UNRESOLVED_HINT());
  }

  private static LogicalPlan resolved(LogicalPlan node, HintedRelations marks) {
    if (!hasHints(node)) {
      return node;
    }
    LogicalPlan plan = Parts.withChildren(node, child -> resolved(child, marks));
    if (plan instanceof UnresolvedHint hint
        && hint.name().equalsIgnoreCase(NAME)
        && hint.child().resolved()) {
      return names(hint).map(names -> marked(hint, names, marks)).orElse(hint);
    }
    return plan;
  }

  /** The names that a hint gives; empty if it gives something else. */
  private static Optional<List<List<String>>> names(UnresolvedHint hint) {
    List<List<String>> result = new ArrayList<>();
    for (Object each : Scala.list(hint.parameters())) {
      if (each instanceof String text) {
        result.add(Scala.list(UnresolvedAttribute.parseAttributeName(text)));
      } else if (each instanceof UnresolvedAttribute name) {
        result.add(Scala.list(name.nameParts()));
      } else if (each instanceof Attribute column) { // there is a column of this name
        result.add(List.of(column.name()));
      } else {
        return Optional.empty();
      }
    }
    return Optional.of(result);
  }

  private static LogicalPlan marked(
      UnresolvedHint hint, List<List<String>> names, HintedRelations marks) {
    if (names.isEmpty()) {
      return marks.marked(hint.child());
    }
    Set<List<String>> missed = new HashSet<>(names);
    LogicalPlan result = named(hint.child(), names, marks, missed);
    if (!missed.isEmpty()) {
      Set<Seq<String>> unknown =
          missed.stream().map(each -> Scala.<String>seq(each)).collect(Collectors.toSet());
      SQLConf.get()
          .hintErrorHandler()
          .hintRelationsNotFound(
              hint.name(), Scala.<Object>seq(Scala.list(hint.parameters())), Scala.set(unknown));
    }
    return result;
  }

  /** Looks for names where join hints do: not within what has an alias, nor in views. */
  private static LogicalPlan named(
      LogicalPlan plan, List<List<String>> names, HintedRelations marks, Set<List<String>> missed) {
    if (marks.isCached(plan)) {
      missed.clear();
      return plan;
    }
    if (plan instanceof SubqueryAlias alias) {
      List<List<String>> found = names.stream().filter(each -> isNameOf(each, alias)).toList();
      missed.removeAll(found);
      return found.isEmpty() ? plan : marks.marked(plan);
    }
    return plan instanceof View
        ? plan
        : Parts.withChildren(plan, child -> named(child, names, marks, missed));
  }

  private static boolean isNameOf(List<String> name, SubqueryAlias alias) {
    List<String> full = new ArrayList<>(Scala.list(alias.identifier().qualifier()));
    full.add(alias.identifier().name());
    int more = full.size() - name.size();
    if (more < 0) {
      return false;
    }
    for (int place = 0; place < name.size(); place++) {
      if (!(boolean) SQLConf.get().resolver().apply(name.get(place), full.get(more + place))) {
        return false;
      }
    }
    return true;
  }
}
