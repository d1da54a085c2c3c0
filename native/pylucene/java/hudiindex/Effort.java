package hudiindex;

import java.util.concurrent.ForkJoinWorkerThread;
import java.util.concurrent.atomic.AtomicLong;

/**
 * One look-up by any number of threads, which ends when it takes too many steps or when nobody
 * waits for it any more. The thread that began it asks for that; the others see the answer.
 */
public final class Effort {
  /** Ends a look-up that is not wanted. */
  static final class Unwanted extends RuntimeException {
    private static final long serialVersionUID = 1;

    Unwanted() {
      super("the look-up is not wanted any more", null, false, false);
    }
  }

  private static volatile long askedEvery = 50_000_000;

  private final Thread asking;
  private final AtomicLong left;
  private long asked = System.nanoTime();
  private volatile boolean isOver;

  /**
   * @param most approximate maximum number of steps: a row takes one, a term several
   */
  Effort(long most) {
    Thread thread = Thread.currentThread();
    // Java's own threads do not come from Python.
    asking = thread instanceof ForkJoinWorkerThread ? null : thread;
    left = new AtomicLong(most);
  }

  Effort() {
    this(Long.MAX_VALUE);
  }

  /** The least time between two questions of a look-up; for tests. */
  public static void askEvery(long nanoseconds) {
    askedEvery = nanoseconds;
  }

  /**
   * Counts some steps.
   *
   * @return whether no more than the maximum have been taken
   * @throws Unwanted if nobody waits for the look-up any more
   */
  boolean take(int steps) {
    if (isOver()) {
      throw new Unwanted();
    }
    return left.addAndGet(-steps) >= 0;
  }

  /** Whether nobody waits for it any more. */
  boolean isOver() {
    Caller who = Caller.known();
    if (!isOver && who != null && Thread.currentThread() == asking) {
      long now = System.nanoTime();
      if (now - asked >= askedEvery) {
        asked = now;
        isOver = !who.isWaiting();
      }
    }
    return isOver;
  }
}
