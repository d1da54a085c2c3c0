package hudiindex.spark.source;

import static org.apache.spark.sql.functions.from_json;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hudiindex.spark.ExplainedQuery;
import hudiindex.spark.Json;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * Has `serve-spark` run index statements. It parses them, but only the session's catalog knows
 * where a table is: the daemon says which one it wants to know about, and is asked again.
 */
final class DaemonStatements {
  /** To find out what a statement is; running it takes as long as it takes. */
  private static final long DESCRIPTION_MILLIS = 60_000;

  /** As Python writes times. */
  private static final Map<String, String> JSON =
      Map.of("mode", "FAILFAST", "timestampFormat", "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX");

  private final Daemon daemon;
  private final String explain;

  /**
   * @param explain the question about a query that has been planned
   */
  DaemonStatements(Daemon daemon, String explain) {
    this.daemon = daemon;
    this.explain = explain;
  }

  /** See {@link Source#statement}. */
  String described(SparkSession session, String text) throws Exception {
    Question question = body -> Daemon.text(daemon.answer("statement", body, DESCRIPTION_MILLIS));
    return answered(session, text, question).toString();
  }

  /** See {@link Source#run}. */
  Outcome outcome(SparkSession session, String text, Object arguments) throws Exception {
    JsonNode answer = answered(session, text, body -> Daemon.text(daemon.answerOnce("run", body)));
    if (answer.has("left")) {
      return new Outcome.LeftToHudi(otherwise(answer.path("otherwise")));
    }
    if (answer.has("query")) {
      String query = answer.get("query").asText();
      boolean analyzes = answer.path("analyze").asBoolean();
      ObjectNode planned = ExplainedQuery.of(session, query, analyzes, arguments);
      String explained =
          Daemon.text(daemon.answer(explain, planned.toString(), DESCRIPTION_MILLIS));
      answer = Answer.ofStatement(explained);
    }
    return new Outcome.Frame(frame(session, answer));
  }

  private interface Question {
    String answer(String body) throws Exception;
  }

  /** The answer to a question about a statement, with what the catalog knows if that is wanted. */
  private static JsonNode answered(SparkSession session, String text, Question question)
      throws Exception {
    String catalog = session.sessionState().catalogManager().currentCatalog().name();
    ObjectNode body = Json.object().put("text", text).put("catalog", catalog);
    JsonNode answer = Answer.ofStatement(question.answer(body.toString()));
    if (!answer.has("table")) {
      return answer;
    }
    body.set("entry", entry(session.sessionState().catalog(), answer.get("table")));
    return Answer.ofStatement(question.answer(body.toString()));
  }

  private static ObjectNode entry(SessionCatalog catalog, JsonNode wanted)
      throws AnalysisException {
    Option<String> database = Option.apply(wanted.path("database").textValue());
    TableIdentifier name = new TableIdentifier(wanted.get("name").asText(), database);
    ObjectNode entry = Json.object().put("found", true);
    if (catalog.isTempView(name)) {
      return entry.put("is_view", true);
    }
    if (!catalog.tableExists(name)) {
      return entry.put("found", false);
    }
    CatalogTable table = catalog.getTableMetadata(name);
    if (table.tableType().equals(CatalogTableType.VIEW())) {
      return entry.put("is_view", true);
    }
    entry.put("location", new Path(table.location()).toString()); // without percent escapes
    entry.put("provider", text(table.provider()));
    return entry.put("input_format", text(table.storage().inputFormat()));
  }

  private static String text(Option<String> option) {
    return option.isEmpty() ? null : option.get();
  }

  private static Optional<StatementFailed> otherwise(JsonNode error) {
    return error.isObject() ? Optional.of(Answer.failure(error)) : Optional.empty();
  }

  private static Dataset<Row> frame(SparkSession session, JsonNode answer) {
    StructType columns = StructType.fromDDL(answer.get("columns").asText());
    List<String> texts = new ArrayList<>();
    answer.get("rows").forEach(each -> texts.add(each.toString()));
    Column row = from_json(new Column("value"), columns, JSON).as("row");
    Dataset<Row> rows = session.createDataset(texts, Encoders.STRING()).select(row).select("row.*");
    // Once more, since all that comes of JSON may be NULL.
    return session.createDataFrame(rows.collectAsList(), columns);
  }
}
