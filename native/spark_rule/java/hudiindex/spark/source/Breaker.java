package hudiindex.spark.source;

import java.util.function.LongSupplier;

/** Stops calls to a source that failed several times in a row, but for a trial after each pause. */
public final class Breaker {
  private final int failures;
  private final long pauseNanos;
  private final LongSupplier clock;
  private int inARow;
  private long nextTry;

  /**
   * @param failures in a row after which calls stop
   * @param pauseNanos until one call is tried
   * @param clock nanoseconds
   */
  public Breaker(int failures, long pauseNanos, LongSupplier clock) {
    this.failures = failures;
    this.pauseNanos = pauseNanos;
    this.clock = clock;
  }

  /** Whether a call may be made. After failures, one may after each pause. */
  public synchronized boolean allowsCall() {
    if (inARow < failures) {
      return true;
    }
    if (clock.getAsLong() - nextTry < 0) {
      return false;
    }
    nextTry = clock.getAsLong() + pauseNanos;
    return true;
  }

  /** The source has responded. */
  public synchronized void succeeded() {
    inARow = 0;
  }

  /**
   * It has not. Returns whether this failure is the one after which calls stop.
   *
   * @param lasting whether the next call would fail, too, so that calls stop at once
   */
  public synchronized boolean failed(boolean lasting) {
    boolean stopped = inARow >= failures;
    inARow = lasting ? failures : inARow + 1;
    nextTry = clock.getAsLong() + pauseNanos;
    return !stopped && inARow >= failures;
  }
}
