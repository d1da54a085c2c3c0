package hudiindex.spark.source;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hudiindex.spark.Json;
import java.util.ArrayList;
import java.util.List;

/**
 * Who reads the rows of a request, and why.
 *
 * @param reader {@link #DRIVER}, {@link #TASKS}, {@link #SPARK} or {@link #UNDECIDED}
 * @param reason in one sentence without full stop
 * @param rows the most rows that the index finds; 0 if Spark reads
 * @param total the rows of the file slices that it searches
 * @param indexes the names of the indexes that serve
 * @param where the condition that it answers
 * @param instant at which the rows are read
 */
public record Decision(
    String reader,
    String reason,
    long rows,
    long total,
    List<String> indexes,
    String where,
    String instant) {
  public static final String DRIVER = "driver";
  public static final String TASKS = "tasks";
  public static final String SPARK = "spark";

  /** Decided when the query runs, and the values are known that its conditions wait for. */
  public static final String UNDECIDED = "undecided";

  /** Spark's own scan. */
  public static Decision spark(String reason) {
    return new Decision(SPARK, reason, 0, 0, List.of(), "", "");
  }

  /** From the response of a source. */
  static Decision read(String answer) {
    JsonNode json = Json.read(answer);
    List<String> indexes = new ArrayList<>();
    json.path("indexes").forEach(each -> indexes.add(each.asText()));
    return new Decision(
        json.path("reader").asText(SPARK),
        json.path("reason").asText(),
        json.path("rows").asLong(),
        json.path("total").asLong(),
        List.copyOf(indexes),
        json.path("where").asText(),
        json.path("instant").asText());
  }

  /** Whether the index finds the rows, or may. */
  public boolean isByIndex() {
    return !reader.equals(SPARK);
  }

  /** Whether it depends on values that are known when the query runs. */
  public boolean isUndecided() {
    return reader.equals(UNDECIDED);
  }

  /** The decision in JSON. */
  public ObjectNode json() {
    ObjectNode json = Json.object().put("reader", reader).put("reason", reason);
    json.put("rows", rows).put("total", total).put("where", where);
    json.put("instant", instant);
    ArrayNode names = json.putArray("indexes");
    indexes.forEach(names::add);
    return json;
  }
}
