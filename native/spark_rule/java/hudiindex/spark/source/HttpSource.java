package hudiindex.spark.source;

import com.fasterxml.jackson.databind.JsonNode;
import hudiindex.spark.IndexSettings;
import hudiindex.spark.Json;
import hudiindex.spark.line.SparkLine;
import java.io.InputStream;
import java.net.http.HttpHeaders;
import java.net.http.HttpResponse;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.functions;

/**
 * Asks `serve-spark`, for sessions without Python, which answers as {@link PythonSource} has it:
 * with rows in Arrow's format, or with JSON.
 *
 * <p>No task can read by index: many rows come to the driver in parts. None can evaluate a
 * full-text call: a query with one on texts that no index finds ends with an error.
 */
public final class HttpSource implements Source {
  /** Longer than the optimizer waits, for a late decision serves the next query. */
  private static final long DECISION_MILLIS = 60_000;

  private final Daemon daemon;
  private final DaemonStatements statements;
  private final String ofRelation;

  /**
   * @param address of the daemon, such as {@code http://127.0.0.1:7051}
   * @param token that it requires
   * @param cores the number of tasks that Spark runs at once
   * @throws IllegalArgumentException the address is none, or the token cannot be sent
   */
  public HttpSource(String address, String token, int cores) {
    this.daemon = new Daemon(address, token);
    this.ofRelation = "?cores=" + cores;
    this.statements = new DaemonStatements(daemon, "explain" + ofRelation);
  }

  @Override
  public String decide(String request) throws Exception {
    String answer = Daemon.text(daemon.answer("decide" + ofRelation, request, DECISION_MILLIS));
    Answer.ofRelation(answer);
    return answer;
  }

  @Override
  public Rows rows(SparkSession session, String request, long use) throws Exception {
    long millis = IndexSettings.of(session).readMillis();
    HttpResponse<InputStream> response =
        daemon.answer("rows" + ofRelation + "&parts=true", request, millis);
    HttpHeaders headers = response.headers();
    if (Daemon.isInParts(headers)) {
      return PartsOfRows.read(session.sparkContext(), response.body(), millis);
    }
    return headers.firstValue("Content-Type").orElse("").startsWith("application/json")
        ? Answer.withoutRows(Daemon.text(response))
        : new Rows.InDriver(response.body().readAllBytes(), headers.firstValue("Hudi-Index-Cost"));
  }

  @Override
  public String bind(String call) throws Exception {
    String answer = Daemon.text(daemon.answer("bind", call, DECISION_MILLIS));
    return Answer.ofStatement(answer).toString();
  }

  /** An error, unless the text is NULL: only Python evaluates calls. */
  @Override
  public Expression evaluated(String call, Expression text) {
    JsonNode json = Json.read(call);
    String name = json.path("function").asText();
    String error =
        "PREDICATE_UNSUPPORTED: "
            + name
            + " has to be evaluated on texts that no index finds, and this session has no Python."
            + " Build the index for the whole table, ask for fewer rows, or run the query in"
            + " PySpark.";
    Column failing = functions.raise_error(functions.lit(error));
    String type = json.has("mode") ? "float" : "boolean"; // a score, or a condition
    return SparkLine.expression(
        functions.when(SparkLine.column(text).isNotNull(), failing).cast(type));
  }

  @Override
  public String statement(SparkSession session, String text) throws Exception {
    return statements.described(session, text);
  }

  @Override
  public Outcome run(SparkSession session, String text, Object arguments) throws Exception {
    return statements.outcome(session, text, arguments);
  }
}
