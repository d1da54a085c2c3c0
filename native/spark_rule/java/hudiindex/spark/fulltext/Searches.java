package hudiindex.spark.fulltext;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hudiindex.spark.Json;
import hudiindex.spark.Unchecked;
import hudiindex.spark.catalyst.FullTextCall;
import hudiindex.spark.catalyst.Parts;
import hudiindex.spark.source.FullText;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.BooleanType$;

/** Binds conditions to the analyzers of the columns that they search. */
final class Searches {
  private final Origins origins;
  private final FullText fullText;

  Searches(Origins origins, FullText fullText) {
    this.origins = origins;
    this.fullText = fullText;
  }

  /**
   * A resolved plan with all conditions bound, but those on a part of the query that is not to be
   * seen from here.
   *
   * @param around the nodes around the sub-query, the nearest first
   */
  LogicalPlan bound(LogicalPlan node, List<LogicalPlan> around) {
    if (!Calls.mayBeIn(node)) {
      return node;
    }
    List<LogicalPlan> scope = scope(node, around);
    LogicalPlan below = Parts.withChildren(node, each -> bound(each, around));
    LogicalPlan within = Parts.withSubqueries(below, each -> bound(each, scope));
    return Calls.replaced(within, each -> bound((UnboundCall) each, scope));
  }

  /** A node, and those around its sub-query. */
  static List<LogicalPlan> scope(LogicalPlan node, List<LogicalPlan> around) {
    List<LogicalPlan> result = new ArrayList<>(List.of(node));
    result.addAll(around);
    return result;
  }

  private Expression bound(UnboundCall call, List<LogicalPlan> scope) {
    if (!call.isSearch()) {
      return call;
    }
    Arguments arguments = Arguments.of(call);
    Optional<List<Origins.Origin>> columns = columns(call.name(), arguments.column(), scope);
    if (columns.isEmpty()) {
      return call;
    }
    if (arguments.text().isEmpty()) {
      return Literal.create(null, BooleanType$.MODULE$);
    }
    ObjectNode request = Json.object().put("function", call.name());
    request.put("text", arguments.text().get()).put("edits", arguments.edits().orElse(null));
    ArrayNode searched = request.putArray("columns");
    for (Origins.Origin each : columns.get()) {
      ObjectNode column = searched.addObject().put("table", each.files().table());
      each.names().forEach(column.putArray("names")::add);
    }
    JsonNode answer = fullText.bound(request.toString());
    return answer.has("constant")
        ? Literal.create(answer.get("constant").booleanValue(), BooleanType$.MODULE$)
        : new FullTextCall(arguments.column(), answer.get("call").toString(), fullText);
  }

  private Optional<List<Origins.Origin>> columns(
      String name, Expression text, List<LogicalPlan> scope) {
    try {
      return origins.of(text, scope);
    } catch (Origins.NoColumn error) {
      throw Unchecked.thrown(Refusals.noColumn(name, text));
    }
  }
}
