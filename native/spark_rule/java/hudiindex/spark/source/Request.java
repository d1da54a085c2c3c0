package hudiindex.spark.source;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hudiindex.spark.Json;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * What a query wants of one Hudi table. Equal requests want the same rows and columns of the same
 * snapshot.
 *
 * <p>In JSON: {@code version}; {@code table}, its base path; {@code instants}, the requested times
 * of the completed commits that Spark's own relation sees; {@code options} of that relation; {@code
 * columns} with {@code name} and {@code type} (Spark's JSON); {@code where}, a list of conditions
 * that all rows wanted fulfill, as hudiindex.spark.catalyst.Conditions writes them.
 */
public record Request(
    String table,
    List<String> instants,
    Map<String, String> options,
    List<Column> columns,
    String where,
    String text) {
  private static final int VERSION = 1;

  /** A column's name, and its type as Spark writes it in JSON. */
  public record Column(String name, String type) {}

  /** A request. */
  public static Request of(
      String table,
      List<String> instants,
      Map<String, String> options,
      List<Column> columns,
      String where) {
    ObjectNode json = Json.object().put("version", VERSION).put("table", table);
    ArrayNode times = json.putArray("instants");
    instants.forEach(times::add);
    ObjectNode settings = json.putObject("options");
    new TreeMap<>(options).forEach(settings::put);
    ArrayNode names = json.putArray("columns");
    for (Column each : columns) {
      names.addObject().put("name", each.name()).set("type", Json.read(each.type()));
    }
    json.set("where", Json.read(where));
    return new Request(table, instants, options, columns, where, json.toString());
  }

  /** The same rows with other columns: Spark prunes on after a decision. */
  public Request withColumns(List<Column> others) {
    return others.equals(columns) ? this : of(table, instants, options, others, where);
  }

  /** The request in JSON. */
  public ObjectNode json() {
    return (ObjectNode) Json.read(text);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Request request && request.text.equals(text);
  }

  @Override
  public int hashCode() {
    return text.hashCode();
  }
}
