package hudiindex.spark.source;

import com.fasterxml.jackson.databind.JsonNode;
import hudiindex.spark.Scala;
import java.util.List;
import java.util.Optional;
import java.util.function.BiFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.python.UserDefinedPythonFunction;
import py4j.ClientServerConnection;
import py4j.Py4JPythonClient;
import py4j.Py4JPythonClientPerThread;

/**
 * Asks the Python process of the driver, by py4j. The function's interface is one of Java's own,
 * since py4j looks for it on the class loader of whichever thread hands it over.
 *
 * <p>The question {@code decide} comes with a request in JSON, {@code rows} with an array of the
 * session, a request and the number of a use. Rows are bytes or a frame, or JSON with one of the
 * fields {@code reason} (Spark has to scan) and {@code cancelled}.
 *
 * <p>The questions {@code statement} and {@code run} come with an array of the session, the text
 * and, to run it, its arguments. The result is a frame. An error is an exception of Spark's, or
 * JSON with {@code error} (its code), {@code message}, {@code remedy} and {@code syntax} (whether
 * it is one).
 *
 * <p>The question {@code bind} comes with a call in JSON, {@code function} with a bound one, and is
 * answered by a function of PySpark's.
 *
 * <p>Instead of any answer there may be JSON with the field {@code failed}: Python's error, in one
 * line.
 */
public final class PythonSource implements Source {
  private final BiFunction<String, Object, Object> python;
  private final Py4JPythonClient client;

  /**
   * @param client calls Python
   */
  public PythonSource(BiFunction<String, Object, Object> python, Py4JPythonClient client) {
    this.python = python;
    this.client = client;
  }

  @Override
  public String decide(String request) throws SourceFailed {
    String answer = (String) python.apply("decide", request);
    Answer.ofRelation(answer);
    return answer;
  }

  @Override
  public Rows rows(SparkSession session, String request, long use) throws SourceFailed {
    Object answer = python.apply("rows", new Object[] {session, request, use});
    if (answer instanceof byte[] stream) {
      return new Rows.InDriver(stream, Optional.empty());
    }
    if (answer instanceof Dataset<?> frame) {
      return new Rows.ByTasks(withRows(frame));
    }
    return Answer.withoutRows((String) answer);
  }

  @Override
  public String statement(SparkSession session, String text) throws Exception {
    return answered(python.apply("statement", new Object[] {session, text})).toString();
  }

  @Override
  public Outcome run(SparkSession session, String text, Object arguments) throws Exception {
    Object answer = python.apply("run", new Object[] {session, text, arguments});
    if (answer instanceof Dataset<?> frame) {
      return new Outcome.Frame(withRows(frame));
    }
    throw new SourceFailed("no result: " + answered(answer));
  }

  @Override
  public String bind(String call) throws Exception {
    return answered(python.apply("bind", call)).toString();
  }

  @Override
  public Expression evaluated(String call, Expression text) throws Exception {
    Object answer = python.apply("function", call);
    if (answer instanceof UserDefinedPythonFunction function) {
      return function.builder(Scala.seq(List.of(text)));
    }
    throw new SourceFailed("no function: " + answered(answer));
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

  @SuppressWarnings("unchecked") // py4j hands over what PySpark wraps: a frame has rows
  private static Dataset<Row> withRows(Dataset<?> frame) {
    return (Dataset<Row>) frame;
  }

  /** What Python says of a statement, if that is no error. */
  private static JsonNode answered(Object answer) throws Exception {
    if (answer instanceof Exception error) {
      throw error;
    }
    return Answer.ofStatement((String) answer);
  }
}
