package hudiindex.spark.source;

import com.fasterxml.jackson.databind.JsonNode;
import hudiindex.spark.Json;
import hudiindex.spark.SparkErrors;
import hudiindex.spark.Unchecked;
import java.util.concurrent.Callable;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Expression;

/**
 * Has a source bind full-text calls, and evaluate them where no index does: on threads that can be
 * left, however long it takes, since a query with such a call has no answer without. Errors are
 * those that Spark shows.
 */
public final class FullText {
  private final Source source;
  private final Deadline calls;

  public FullText(Source source) {
    this.source = source;
    this.calls = new Deadline(source::leave);
  }

  /** See {@link Source#bind}. */
  public JsonNode bound(String call) {
    return Json.read(completed(() -> source.bind(call)));
  }

  /** See {@link Source#evaluated}. */
  public Expression evaluated(String call, Expression text) {
    return completed(() -> source.evaluated(call, text));
  }

  private <T> T completed(Callable<T> call) {
    SparkSession session = SparkSession.active();
    try {
      return calls.completed(
          () -> {
            SparkSession.setActiveSession(session);
            return call.call();
          });
    } catch (Exception error) { // whatever the source is
      throw Unchecked.thrown(SparkErrors.shown(error));
    }
  }
}
