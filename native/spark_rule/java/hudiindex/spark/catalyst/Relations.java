package hudiindex.spark.catalyst;

import hudiindex.spark.Scala;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** Looks through plans for Hudi relations, identified by the number of their first attribute. */
public final class Relations {
  private Relations() {}

  /**
   * The relations of a plan, those below a node before those of its sub-queries; several times what
   * occurs several times, such as a CTE that is computed once.
   */
  static List<Long> numbers(LogicalPlan plan) {
    List<Long> result = new ArrayList<>();
    visit(plan, (number, files) -> result.add(number));
    return result;
  }

  /** The same numbers, each once, with the base paths of the tables. */
  public static Map<Long, String> tables(LogicalPlan plan) {
    Map<Long, String> result = new LinkedHashMap<>();
    visit(plan, (number, files) -> result.computeIfAbsent(number, each -> files.table()));
    return result;
  }

  private static void visit(LogicalPlan plan, BiConsumer<Long, HudiFiles> relation) {
    if (plan instanceof Indexed indexed) {
      PlannedRead read = indexed.plannedRead();
      relation.accept(read.use().relation(), read.files());
      return;
    }
    HudiFiles.of(plan).ifPresent(files -> relation.accept(number(plan), files));
    Scala.list(plan.children()).forEach(each -> visit(each, relation));
    Scala.list(plan.subqueries()).forEach(each -> visit(each, relation));
  }

  /** The nodes of a plan, the topmost first, without those of sub-queries. */
  public static List<LogicalPlan> nodes(LogicalPlan plan) {
    List<LogicalPlan> result = new ArrayList<>(List.of(plan));
    Scala.list(plan.children()).forEach(each -> result.addAll(nodes(each)));
    return result;
  }

  /** Identifies a relation of a plan. */
  static long number(LogicalPlan relation) {
    List<Attribute> output = Scala.list(relation.output());
    return output.isEmpty() ? -1 : output.get(0).exprId().id();
  }
}
