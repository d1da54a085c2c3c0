package hudiindex.spark.source;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hudiindex.spark.Json;
import java.util.List;
import java.util.Optional;

/**
 * Numbers of rows that a query wants instead of the rows.
 *
 * <p>In JSON: {@code names} of the columns of the result; {@code group}, the text column for each
 * of whose values there is a row of the result, with the value in its first column; {@code of}, a
 * list for each column that follows: the conditions on the rows that are counted, beside those of
 * the request. If the query wants as many rows as there are instead, {@code most}: no more are
 * wanted, or with {@code all} all of them, but by Spark if they are more.
 *
 * @param json all of this
 */
public record Counts(ObjectNode json) {
  /**
   * Counts in one row, or in one for each value of a column.
   *
   * @param conditions those of each count
   */
  public static Counts of(List<String> names, Optional<String> group, List<ArrayNode> conditions) {
    ObjectNode json = Json.object();
    ArrayNode columns = json.putArray("names");
    names.forEach(columns::add);
    group.ifPresent(column -> json.put("group", column));
    ArrayNode counted = json.putArray("of");
    conditions.forEach(counted::add);
    return new Counts(json);
  }

  /** As many rows as there are, but no more than some, with any number. */
  public static Counts ofRows(List<String> names, int most) {
    ObjectNode json = of(names, Optional.empty(), List.of(Json.array())).json();
    return new Counts(json.put("most", most));
  }

  /** As many rows as there are, with any number; by Spark if they are more than some. */
  public static Counts ofAllRows(List<String> names, int most) {
    return new Counts(ofRows(names, most).json().put("all", true));
  }
}
