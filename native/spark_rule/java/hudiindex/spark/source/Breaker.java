package hudiindex.spark.source;

import java.util.function.LongSupplier;

/** Stops asking a source that has failed several times in a row, except now and then. */
public final class Breaker {
  private final int failures;
  private final long pauseNanos;
  private final LongSupplier clock;
  private int inARow;
  private long nextTry;

  /**
   * @param failures in a row after which nobody asks
   * @param pauseNanos until one caller tries again
   * @param clock nanoseconds
   */
  public Breaker(int failures, long pauseNanos, LongSupplier clock) {
    this.failures = failures;
    this.pauseNanos = pauseNanos;
    this.clock = clock;
  }

  /** Whether the caller may ask. During a failure's pause one caller may after each pause. */
  public synchronized boolean mayAsk() {
    if (inARow < failures) {
      return true;
    }
    if (clock.getAsLong() - nextTry < 0) {
      return false;
    }
    nextTry = clock.getAsLong() + pauseNanos;
    return true;
  }

  /** The source has answered. */
  public synchronized void answered() {
    inARow = 0;
  }

  /** It has not. Returns whether this failure is the one after which nobody asks. */
  public synchronized boolean failed() {
    inARow++;
    nextTry = clock.getAsLong() + pauseNanos;
    return inARow == failures;
  }
}
