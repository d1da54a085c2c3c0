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
 * Calls that end in time, on threads of their own: py4j waits for Python for ever, and cancelling a
 * Spark job does not end that.
 */
public final class Deadline {
  /** Calls that may hang at a time; no more are begun then. */
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
    ClassLoader loader = Thread.currentThread().getContextClassLoader();
    Future<T> answer = threads.submit(() -> run(call, loader));
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

  private <T> T run(Callable<T> call, ClassLoader loader) throws Exception {
    Thread.currentThread().setContextClassLoader(loader);
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
