package hudiindex.spark.source;

import java.util.concurrent.Callable;
import org.apache.spark.sql.SparkSession;

/**
 * Has a source run index statements, on threads that can be left: an interrupt ends the wait, as it
 * cannot while py4j waits for Python.
 */
public final class Statements {
  private final Source source;
  private final Runnable after;
  private final Deadline calls;

  /**
   * @param after run after each statement
   */
  public Statements(Source source, Runnable after) {
    this.source = source;
    this.after = after;
    this.calls = new Deadline(source::leave);
  }

  /** See {@link Source#statement}. */
  public String described(SparkSession session, String text) throws Exception {
    return calls.completed(within(session, () -> source.statement(session, text)));
  }

  /** See {@link Source#run}. */
  public Outcome outcome(
      SparkSession session, String text, Object arguments, Decisions.Wrapper wrapper)
      throws Exception {
    Callable<Outcome> run = () -> source.run(session, text, arguments);
    try {
      return calls.completed(wrapper.wrapped(within(session, run)));
    } finally {
      after.run();
    }
  }

  /** A call with the session as the thread's, whose settings Spark takes. */
  private static <T> Callable<T> within(SparkSession session, Callable<T> call) {
    return () -> {
      SparkSession.setActiveSession(session);
      return call.call();
    };
  }
}
