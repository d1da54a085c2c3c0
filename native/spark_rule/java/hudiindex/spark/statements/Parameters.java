package hudiindex.spark.statements;

import hudiindex.spark.Scala;
import hudiindex.spark.line.SparkLine;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.analysis.NamedParameter;
import org.apache.spark.sql.catalyst.analysis.PosParameter;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.Product;
import scala.collection.Iterable;
import scala.collection.Iterator;
import scala.collection.Seq;

/**
 * The parameters of a query, which Spark's analyzer replaces by the values given.
 *
 * @param names of parameters with names; empty for those with positions
 * @param values in the order of names or positions
 */
record Parameters(List<String> names, Seq<Expression> values) {
  static final Parameters NONE = new Parameters(List.of(), Scala.seq(List.of()));

  /** The parameters in a query, wherever they are. */
  static Parameters in(LogicalPlan query) {
    Map<String, Expression> named = new TreeMap<>();
    Map<Integer, Expression> positioned = new TreeMap<>();
    find(query, named, positioned);
    List<Expression> values = new ArrayList<>(named.values());
    values.addAll(positioned.values());
    return new Parameters(List.copyOf(named.keySet()), Scala.seq(values));
  }

  private static void find(
      Object part, Map<String, Expression> named, Map<Integer, Expression> positioned) {
    if (part instanceof NamedParameter parameter) {
      named.put(parameter.name(), parameter);
    } else if (part instanceof PosParameter parameter) {
      positioned.put(parameter.pos(), parameter);
    } else if (part instanceof Product || part instanceof Iterable) {
      // Nodes, also of sub-queries and common table expressions, which are no children.
      Iterator<?> parts =
          part instanceof Product whole ? whole.productIterator() : ((Iterable<?>) part).iterator();
      while (parts.hasNext()) {
        find(parts.next(), named, positioned);
      }
    }
  }

  /** The values as {@link hudiindex.spark.source.Source#run} takes them. */
  Object arguments() {
    List<Column> columns = new ArrayList<>();
    Scala.list(values).forEach(each -> columns.add(SparkLine.column(each)));
    if (names.isEmpty()) {
      return columns;
    }
    Map<String, Column> result = new TreeMap<>();
    for (int place = 0; place < names.size(); place++) {
      result.put(names.get(place), columns.get(place));
    }
    return result;
  }
}
