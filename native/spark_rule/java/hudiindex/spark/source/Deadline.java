package hudiindex.spark.source;

import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Calls that a caller can leave, in time or interrupted, since they run on threads of their own:
 * py4j waits for Python for ever, and cancelling a Spark job does not end that.
 */
public final class Deadline {
  /** Calls with a deadline that may hang at a time; no more are begun then. */
  private static final int HANGING = 16;

  /** A thread that is idle for this long ends. */
  private static final long IDLE_MILLIS = 1_000;

  private final Semaphore left = new Semaphore(HANGING);
  private final ExecutorService threads;

  /**
   * @param atEnd run by each thread when it ends
   */
  public Deadline(Runnable atEnd) {
    threads =
        new ThreadPoolExecutor(
            0,
            Integer.MAX_VALUE,
            IDLE_MILLIS,
            TimeUnit.MILLISECONDS,
            new SynchronousQueue<>(),
            calls -> thread(calls, atEnd));
  }

  /**
   * What a call returns.
   *
   * @throws SourceFailed it takes longer, fails, or too many others hang
   * @throws InterruptedException the calling thread was interrupted while it waited
   */
  public <T> T within(long millis, Callable<T> call) throws SourceFailed, InterruptedException {
    if (!left.tryAcquire()) {
      throw new SourceFailed(HANGING + " calls have not returned yet");
    }
    Future<T> answer = begun(() -> returned(call));
    try {
      return answer.get(millis, TimeUnit.MILLISECONDS);
    } catch (TimeoutException error) {
      throw new SourceFailed("no answer within " + millis + " ms", error);
    } catch (ExecutionException error) {
      if (error.getCause() instanceof SourceFailed failed) {
        throw failed;
      }
      throw new SourceFailed(error.getCause().toString(), error.getCause());
    }
  }

  /** What a call returns, however long it takes. An interrupt ends the wait, not the call. */
  public <T> T completed(Callable<T> call) throws Exception {
    try {
      return begun(call).get();
    } catch (ExecutionException error) {
      if (error.getCause() instanceof Exception cause) {
        throw cause;
      }
      throw error;
    }
  }

  private <T> Future<T> begun(Callable<T> call) {
    ClassLoader loader = Thread.currentThread().getContextClassLoader();
    return threads.submit(
        () -> {
          Thread.currentThread().setContextClassLoader(loader);
          return call.call();
        });
  }

  private <T> T returned(Callable<T> call) throws Exception {
    try {
      return call.call();
    } finally {
      left.release();
    }
  }

  private static Thread thread(Runnable calls, Runnable atEnd) {
    Runnable untilIdle =
        () -> {
          try {
            calls.run();
          } finally {
            atEnd.run();
          }
        };
    Thread thread = new Thread(untilIdle, "hudi-index");
    thread.setDaemon(true);
    return thread;
  }
}
