package hudiindex.spark.catalyst;

import hudiindex.spark.source.Decisions;
import java.util.Properties;
import java.util.concurrent.Callable;
import org.apache.spark.SparkContext;

/**
 * Runs calls with the calling thread's Spark properties: their jobs belong to its job group and
 * scheduler pool, so that what cancels the query cancels them.
 */
public final class JobProperties implements Decisions.Wrapper {
  private final SparkContext context;
  private final Properties properties;

  /** The calling thread's properties. */
  public JobProperties(SparkContext context) {
    this.context = context;
    this.properties = (Properties) context.getLocalProperties().clone();
  }

  @Override
  public <T> Callable<T> wrapped(Callable<T> call) {
    return () -> {
      context.setLocalProperties(properties);
      return call.call();
    };
  }
}
