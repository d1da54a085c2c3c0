package hudiindex.spark;

import hudiindex.spark.line.SparkLine;
import java.util.Optional;
import org.apache.spark.sql.SparkSession;

/**
 * The session's settings, read anew for each query, so that a change counts at once.
 *
 * @param off why queries do not use the index; empty if they do
 */
public record IndexSettings(Optional<String> off, long decideMillis, long readMillis) {
  /** Whether queries use the index. */
  public static final String ENABLED = "spark.hudi.index.enabled";

  /** Whether they do on a line of Spark on which that is not tested with Hudi. */
  public static final String UNTESTED = "spark.hudi.index.untested";

  /** How long the optimizer waits for a decision, in milliseconds; after that Spark scans. */
  public static final String DECIDE = "spark.hudi.index.decideMillis";

  /** How long a query waits for the rows, in milliseconds; after that Spark scans. */
  public static final String READ = "spark.hudi.index.readMillis";

  /** Where `serve-spark` listens, for sessions without Python; set at the session's start. */
  public static final String ADDRESS = "spark.hudi.index.address";

  /** What it wants to be sent. Spark redacts the values of settings with this word. */
  public static final String TOKEN = "spark.hudi.index.token";

  private static final long DECIDE_MILLIS = 2_000;
  private static final long READ_MILLIS = 60_000;

  /** The present settings of a session. */
  public static IndexSettings of(SparkSession session) {
    return new IndexSettings(
        off(session), millis(session, DECIDE, DECIDE_MILLIS), millis(session, READ, READ_MILLIS));
  }

  /** Whether queries use the index. */
  public boolean enabled() {
    return off.isEmpty();
  }

  private static Optional<String> off(SparkSession session) {
    if (!isTrue(session, ENABLED, "true")) {
      return Optional.of(ENABLED + " is false");
    }
    return SparkLine.TESTED || isTrue(session, UNTESTED, "false")
        ? Optional.empty()
        : Optional.of("this is not tested with Hudi on " + Versions.running());
  }

  private static boolean isTrue(SparkSession session, String key, String otherwise) {
    return Boolean.parseBoolean(session.conf().get(key, otherwise).trim());
  }

  private static long millis(SparkSession session, String key, long otherwise) {
    String text = session.conf().get(key, String.valueOf(otherwise)).trim();
    try {
      return Math.max(1, Long.parseLong(text));
    } catch (NumberFormatException error) {
      throw new IllegalArgumentException(key + " is no number of milliseconds: " + text, error);
    }
  }
}
