package hudiindex.spark.source;

import com.fasterxml.jackson.databind.JsonNode;
import hudiindex.spark.Json;
import java.util.function.BiFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import py4j.ClientServerConnection;
import py4j.Py4JPythonClient;
import py4j.Py4JPythonClientPerThread;

/**
 * Asks the Python process of the driver, by py4j. The function's interface is one of Java's own,
 * since py4j looks for it on the class loader of whichever thread hands it over.
 *
 * <p>The questions are {@code decide} and {@code rows}. Rows are bytes or a frame, or JSON with one
 * of the fields {@code reason} (Spark has to scan) and {@code cancelled}. Instead of any answer
 * there may be JSON with the field {@code failed}: Python's error, in one line.
 */
public final class PythonSource implements Source {
  private final BiFunction<String, String, Object> python;
  private final Py4JPythonClient client;

  /**
   * @param client calls Python
   */
  public PythonSource(BiFunction<String, String, Object> python, Py4JPythonClient client) {
    this.python = python;
    this.client = client;
  }

  @Override
  public String decide(String request) throws SourceFailed {
    String answer = (String) python.apply("decide", request);
    failure(Json.read(answer));
    return answer;
  }

  @Override
  @SuppressWarnings("unchecked") // py4j hands over what PySpark wraps: a frame has rows
  public Rows rows(String request) throws SourceFailed {
    Object answer = python.apply("rows", request);
    if (answer instanceof byte[] stream) {
      return new Rows.InDriver(stream);
    }
    if (answer instanceof Dataset<?> frame) {
      return new Rows.ByTasks((Dataset<Row>) frame);
    }
    JsonNode response = Json.read((String) answer);
    failure(response);
    if (response.has("cancelled")) {
      return new Rows.Cancelled(response.get("cancelled").asText());
    }
    return new Rows.BySpark(response.path("reason").asText());
  }

  /**
   * Closes the thread's connection, if PySpark gives each thread one. At its other end a Python
   * thread waits for the next call, and while it does Python cannot shut its callback server down.
   */
  @Override
  public void leave() {
    if (client instanceof Py4JPythonClientPerThread threads) {
      ClientServerConnection connection = threads.getPerThreadConnection();
      if (connection != null) {
        connection.shutdown();
      }
    }
  }

  private static void failure(JsonNode answer) throws SourceFailed {
    if (answer.has("failed")) {
      throw new SourceFailed(answer.get("failed").asText());
    }
  }
}
