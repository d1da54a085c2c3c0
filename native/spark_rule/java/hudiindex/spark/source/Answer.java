package hudiindex.spark.source;

import com.fasterxml.jackson.databind.JsonNode;
import hudiindex.spark.Json;

/** What Python says in JSON, by py4j or by HTTP. */
final class Answer {
  private Answer() {}

  /**
   * An answer about a relation.
   *
   * @throws SourceFailed it has the field {@code failed}: Python's error, in one line
   */
  static JsonNode ofRelation(String text) throws SourceFailed {
    JsonNode answer = Json.read(text);
    if (answer.has("failed")) {
      throw new SourceFailed(answer.get("failed").asText());
    }
    return answer;
  }

  /** An answer to a request for rows that brings none. */
  static Rows withoutRows(String text) throws SourceFailed {
    JsonNode answer = ofRelation(text);
    return answer.has("cancelled")
        ? new Rows.Cancelled(answer.get("cancelled").asText())
        : new Rows.BySpark(answer.path("reason").asText());
  }

  /**
   * An answer about a statement or a full-text call.
   *
   * @throws StatementFailed it has {@code error} (its code), {@code message}, {@code remedy} and
   *     {@code syntax} (whether it is an error of syntax)
   */
  static JsonNode ofStatement(String text) throws SourceFailed, StatementFailed {
    JsonNode answer = ofRelation(text);
    if (answer.has("error")) {
      throw failure(answer);
    }
    return answer;
  }

  /** An answer with an error. */
  static StatementFailed failure(JsonNode answer) {
    return new StatementFailed(
        answer.get("error").asText(),
        answer.path("message").asText(),
        answer.path("remedy").asText(),
        answer.path("syntax").asBoolean());
  }
}
