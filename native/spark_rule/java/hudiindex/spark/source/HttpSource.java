package hudiindex.spark.source;

import com.fasterxml.jackson.databind.JsonNode;
import hudiindex.spark.IndexSettings;
import hudiindex.spark.Json;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.functions;

/**
 * Asks `hudi-index answer`, for sessions without Python. Each question is a POST to {@code
 * /v<version>/<question>} with a JSON body, and is answered as by {@link PythonSource}: by rows in
 * Arrow's format or by JSON. A status that is not 200 comes with an error's code, message and
 * remedy; 4xx if asking again is of no use.
 *
 * <p>No task can read by index, and none can evaluate a full-text call: Spark scans, and a query
 * with a call on texts that no index finds ends with an error.
 */
public final class HttpSource implements Source {
  private static final Duration CONNECTING = Duration.ofSeconds(1);

  /** Longer than the optimizer waits, for a late decision serves the next query. */
  private static final long DECISION_MILLIS = 60_000;

  private final HttpClient client =
      HttpClient.newBuilder()
          .version(HttpClient.Version.HTTP_1_1)
          .connectTimeout(CONNECTING)
          .proxy(HttpClient.Builder.NO_PROXY) // which would see the token
          .build();

  private final URI address;
  private final String token;
  private final String ofRelation;

  /**
   * @param address of the daemon, such as {@code http://127.0.0.1:7051}
   * @param token that it requires
   * @param cores the number of tasks that Spark runs at once
   * @throws IllegalArgumentException the address is none, or the token cannot be sent
   */
  public HttpSource(String address, String token, int cores) {
    this.address = URI.create(address.strip().replaceAll("/+$", "") + "/v" + Request.VERSION + "/");
    this.token = "Bearer " + token.strip();
    this.ofRelation = "?cores=" + cores;
    if (!token.chars().allMatch(each -> each >= ' ' && each <= '~')) {
      throw new IllegalArgumentException(IndexSettings.TOKEN + " cannot be sent"); // not its value
    }
    request("decide", "");
  }

  @Override
  public String decide(String request) throws Exception {
    String answer = text(response("decide" + ofRelation, request, DECISION_MILLIS));
    Answer.ofRelation(answer);
    return answer;
  }

  @Override
  public Rows rows(SparkSession session, String request, long use) throws Exception {
    long millis = IndexSettings.of(session).readMillis();
    HttpResponse<byte[]> response = response("rows" + ofRelation, request, millis);
    String type = response.headers().firstValue("Content-Type").orElse("");
    return type.startsWith("application/json")
        ? Answer.withoutRows(text(response))
        : new Rows.InDriver(response.body());
  }

  @Override
  public String bind(String call) throws Exception {
    return Answer.ofStatement(text(response("bind", call, DECISION_MILLIS))).toString();
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
    return functions.when(new Column(text).isNotNull(), failing).cast(type).expr();
  }

  @Override
  public boolean takesStatements() {
    return false;
  }

  @Override
  public String statement(SparkSession session, String text) throws StatementFailed {
    throw noStatements();
  }

  @Override
  public Dataset<Row> run(SparkSession session, String text, Object arguments)
      throws StatementFailed {
    throw noStatements();
  }

  private static StatementFailed noStatements() {
    return new StatementFailed(
        "STATEMENT_INVALID",
        "Sessions without Python take no index statements.",
        "Use hudi-index on the command line, or hudi-index sql.",
        false);
  }

  /** The answer to a question. */
  private HttpResponse<byte[]> response(String question, String body, long millis)
      throws Exception {
    HttpRequest request = request(question, body);
    HttpResponse<byte[]> response;
    try {
      response = sent(request, millis);
    } catch (ConnectException error) { // which HttpConnectTimeoutException is none of
      throw unreachable(error);
    } catch (IOException error) {
      response = sentAgain(request, millis);
    }
    if (response.statusCode() == 200) {
      return response;
    }
    throw refused(response);
  }

  /** Questions change nothing; the daemon may have closed an idle connection at that moment. */
  private HttpResponse<byte[]> sentAgain(HttpRequest request, long millis) throws Exception {
    try {
      return sent(request, millis);
    } catch (IOException error) {
      throw unreachable(error);
    }
  }

  private HttpResponse<byte[]> sent(HttpRequest request, long millis)
      throws IOException, SourceFailed, InterruptedException {
    // A request's own timeout ends when the headers have come.
    CompletableFuture<HttpResponse<byte[]>> response =
        client.sendAsync(request, HttpResponse.BodyHandlers.ofByteArray());
    try {
      return response.get(millis, TimeUnit.MILLISECONDS);
    } catch (TimeoutException error) {
      throw new SourceFailed("no answer within " + millis + " ms", error);
    } catch (ExecutionException error) {
      if (error.getCause() instanceof IOException cause) {
        throw cause;
      }
      throw new SourceFailed(error.getCause().toString(), error.getCause());
    } finally {
      response.cancel(true);
    }
  }

  private HttpRequest request(String question, String body) {
    return HttpRequest.newBuilder(address.resolve(question))
        .header("Authorization", token)
        .header("Content-Type", "application/json")
        .POST(HttpRequest.BodyPublishers.ofString(body))
        .build();
  }

  private SourceFailed unreachable(IOException error) {
    return SourceFailed.lasting(
        address.getAuthority() + " cannot be reached (" + error.getClass().getSimpleName() + ")",
        "Start hudi-index answer there, or correct spark.hudi.index.address.",
        error);
  }

  private SourceFailed refused(HttpResponse<byte[]> response) {
    String what = address.getAuthority() + " says " + response.statusCode();
    JsonNode error;
    try {
      error = Json.read(text(response));
    } catch (IllegalArgumentException notJson) {
      return SourceFailed.lasting(
          what + ", and is no index service", "Correct spark.hudi.index.address.", notJson);
    }
    String message = what + ": " + error.path("message").asText();
    return response.statusCode() < 500
        ? SourceFailed.lasting(error.path("code").asText(), message, error.path("remedy").asText())
        : new SourceFailed(message);
  }

  private static String text(HttpResponse<byte[]> response) {
    return new String(response.body(), StandardCharsets.UTF_8);
  }
}
