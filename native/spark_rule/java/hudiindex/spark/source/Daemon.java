package hudiindex.spark.source;

import com.fasterxml.jackson.databind.JsonNode;
import hudiindex.spark.IndexSettings;
import hudiindex.spark.Json;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodySubscriber;
import java.net.http.HttpResponse.BodySubscribers;
import java.net.http.HttpResponse.ResponseInfo;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * `serve-spark`, by HTTP. Each question is a POST to {@code /v<version>/<question>} with a JSON
 * body. A status that is not 200 comes with an error's code, message and remedy; 4xx if asking
 * again is of no use.
 */
final class Daemon {
  private static final Duration CONNECTING = Duration.ofSeconds(1);
  private static final String PARTS = "application/vnd.hudi-index.arrow-streams";

  private final HttpClient client =
      HttpClient.newBuilder()
          .version(HttpClient.Version.HTTP_1_1)
          .connectTimeout(CONNECTING)
          .proxy(HttpClient.Builder.NO_PROXY) // which would see the token
          .build();

  private final URI address;
  private final String token;

  /**
   * @param address such as {@code http://127.0.0.1:7051}
   * @param token that it requires
   * @throws IllegalArgumentException the address is none, or the token cannot be sent
   */
  Daemon(String address, String token) {
    this.address = URI.create(address.strip().replaceAll("/+$", "") + "/v" + Request.VERSION + "/");
    this.token = "Bearer " + token.strip();
    if (!token.chars().allMatch(each -> each >= ' ' && each <= '~')) {
      throw new IllegalArgumentException(IndexSettings.TOKEN + " cannot be sent"); // not its value
    }
    request("decide", "");
  }

  /** The answer to a question that changes nothing. */
  HttpResponse<InputStream> answer(String question, String body, long millis) throws Exception {
    HttpRequest request = request(question, body);
    try {
      return accepted(sent(request, millis));
    } catch (ConnectException error) { // which HttpConnectTimeoutException is none of
      throw unreachable(error);
    } catch (IOException error) {
      return accepted(sentAgain(request, millis));
    }
  }

  /** The answer to a question that may change something, so that it is sent once. */
  HttpResponse<InputStream> answerOnce(String question, String body) throws Exception {
    try {
      return accepted(sent(request(question, body), Long.MAX_VALUE));
    } catch (IOException error) {
      throw unreachable(error);
    }
  }

  static String text(HttpResponse<InputStream> response) throws IOException {
    return new String(response.body().readAllBytes(), StandardCharsets.UTF_8);
  }

  /** Whether an answer comes in parts, which are read as they come. Any other has come whole. */
  static boolean isInParts(HttpHeaders headers) {
    return headers.firstValue("Content-Type").equals(Optional.of(PARTS));
  }

  private static BodySubscriber<InputStream> body(ResponseInfo answer) {
    return isInParts(answer.headers())
        ? BodySubscribers.ofInputStream()
        : BodySubscribers.mapping(BodySubscribers.ofByteArray(), ByteArrayInputStream::new);
  }

  private HttpResponse<InputStream> accepted(HttpResponse<InputStream> response)
      throws IOException, SourceFailed {
    if (response.statusCode() == 200) {
      return response;
    }
    throw refused(response);
  }

  /** The daemon may have closed an idle connection at that moment. */
  private HttpResponse<InputStream> sentAgain(HttpRequest request, long millis) throws Exception {
    try {
      return sent(request, millis);
    } catch (IOException error) {
      throw unreachable(error);
    }
  }

  private HttpResponse<InputStream> sent(HttpRequest request, long millis)
      throws IOException, SourceFailed, InterruptedException {
    // A request's own timeout ends when the headers have come.
    CompletableFuture<HttpResponse<InputStream>> response = client.sendAsync(request, Daemon::body);
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
        "Start hudi-index serve-spark there, or correct spark.hudi.index.address.",
        error);
  }

  private SourceFailed refused(HttpResponse<InputStream> response) throws IOException {
    String what = address.getAuthority() + " answered " + response.statusCode();
    JsonNode error;
    try {
      error = Json.read(text(response));
    } catch (IllegalArgumentException notJson) {
      return SourceFailed.lasting(
          what + "; it is not a hudi-index daemon", "Correct spark.hudi.index.address.", notJson);
    }
    String message = what + ": " + error.path("message").asText();
    return response.statusCode() < 500
        ? SourceFailed.lasting(error.path("code").asText(), message, error.path("remedy").asText())
        : new SourceFailed(message);
  }
}
