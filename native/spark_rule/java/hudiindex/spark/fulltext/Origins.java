package hudiindex.spark.fulltext;

import hudiindex.spark.Scala;
import hudiindex.spark.catalyst.HudiFiles;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.OuterReference;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationDef;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.Except;
import org.apache.spark.sql.catalyst.plans.logical.Intersect;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;

/** Finds the tables' columns that an expression of an analyzed plan is. */
final class Origins {
  private final Map<Long, LogicalPlan> ctes = new HashMap<>();

  /**
   * @param root of the plan, with its CTEs
   */
  Origins(LogicalPlan root) {
    addCtes(root);
  }

  private void addCtes(LogicalPlan node) {
    if (node instanceof CTERelationDef cte) {
      ctes.put(cte.id(), cte.child());
    }
    Scala.list(node.children()).forEach(this::addCtes);
  }

  /**
   * A column of a Hudi relation, or a field of one.
   *
   * @param names from the outermost struct in
   */
  record Origin(HudiFiles files, List<String> names) {}

  /** The expression is no unchanged column of a Hudi table. */
  static final class NoColumn extends Exception {
    private static final long serialVersionUID = 1L;
  }

  /** It is a column of a part of the query that is not to be seen from here. */
  private static final class Elsewhere extends Exception {
    private static final long serialVersionUID = 1L;
  }

  /**
   * The origins of a column: several if it passes through a UNION; empty if they are in a part of
   * the query that is not to be seen from here.
   *
   * @param expression one of the first node's
   * @param around a node, and those around its sub-query, the nearest first
   */
  Optional<List<Origin>> of(Expression expression, List<LogicalPlan> around) throws NoColumn {
    Path path = path(expression);
    try {
      for (LogicalPlan node : around) {
        for (LogicalPlan child : Scala.list(node.children())) {
          if (child.outputSet().contains(path.attribute())) {
            List<Origin> result = new ArrayList<>();
            addBelow(child, path, result);
            return Optional.of(result);
          }
        }
      }
    } catch (Elsewhere error) {
      return Optional.empty();
    }
    if (path.isOuter()) {
      return Optional.empty();
    }
    throw new NoColumn();
  }

  private void addBelow(LogicalPlan node, Path path, List<Origin> result)
      throws NoColumn, Elsewhere {
    Optional<HudiFiles> files = HudiFiles.of(node);
    if (files.isPresent()) {
      List<String> names = new ArrayList<>(List.of(path.attribute().name()));
      names.addAll(path.fields());
      result.add(new Origin(files.get(), names));
    } else if (node instanceof CTERelationRef reference) {
      LogicalPlan definition = ctes.get(reference.cteId());
      if (definition == null) {
        throw new Elsewhere();
      }
      addAtPlace(definition, place(node, path), path, result);
    } else if (node instanceof Union) {
      int place = place(node, path);
      for (LogicalPlan child : Scala.list(node.children())) {
        addAtPlace(child, place, path, result);
      }
    } else if (node instanceof Intersect || node instanceof Except) {
      // Their rows are those of their left side.
      addAtPlace(node.children().head(), place(node, path), path, result);
    } else {
      addThrough(node, path, result);
    }
  }

  private void addAtPlace(LogicalPlan node, int place, Path path, List<Origin> result)
      throws NoColumn, Elsewhere {
    addBelow(node, path.on(node.output().apply(place)), result);
  }

  private static int place(LogicalPlan node, Path path) throws NoColumn {
    List<Attribute> output = Scala.list(node.output());
    for (int place = 0; place < output.size(); place++) {
      if (output.get(place).exprId().equals(path.attribute().exprId())) {
        return place;
      }
    }
    throw new NoColumn();
  }

  private void addThrough(LogicalPlan node, Path path, List<Origin> result)
      throws NoColumn, Elsewhere {
    for (LogicalPlan child : Scala.list(node.children())) {
      if (child.outputSet().contains(path.attribute())) {
        addBelow(child, path, result);
        return;
      }
    }
    for (Expression each : Scala.list(node.expressions())) {
      if (each instanceof Alias alias && alias.exprId().equals(path.attribute().exprId())) {
        addThrough(node, path(alias.child()).with(path.fields()), result);
        return;
      }
    }
    throw new NoColumn();
  }

  /**
   * @param fields of its structs, from the outermost in
   * @param isOuter whether it belongs to the query around a sub-query
   */
  private record Path(Attribute attribute, List<String> fields, boolean isOuter) {
    Path with(List<String> more) {
      List<String> all = new ArrayList<>(fields);
      all.addAll(more);
      return new Path(attribute, all, isOuter);
    }

    Path on(Attribute other) {
      return new Path(other, fields, isOuter);
    }
  }

  private static Path path(Expression expression) throws NoColumn {
    if (expression instanceof OuterReference outer) {
      Path path = path((Expression) outer.e());
      return new Path(path.attribute(), path.fields(), true);
    }
    if (expression instanceof Attribute attribute) {
      return new Path(attribute, List.of(), false);
    }
    if (expression instanceof Cast cast && cast.dataType().equals(cast.child().dataType())) {
      return path(cast.child()); // as views have it
    }
    if (expression instanceof GetStructField field) {
      String name = field.childSchema().fields()[field.ordinal()].name();
      return path(field.child()).with(List.of(name));
    }
    throw new NoColumn();
  }
}
