package hudiindex;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Threads that process the fields of an index in parallel. */
final class Workers {
  /** A unit of work that does not use the data of other jobs. */
  interface Job {
    void run() throws IOException;
  }

  final int threads;
  private final ExecutorService pool;

  /**
   * @param threads number of threads; with 1, all work is done in the caller's thread
   */
  Workers(int threads) {
    this.threads = threads;
    pool = threads > 1 ? Executors.newFixedThreadPool(threads, Workers::daemon) : null;
  }

  private static Thread daemon(Runnable work) {
    Thread thread = new Thread(work, "hudiindex");
    thread.setDaemon(true);
    return thread;
  }

  /** Runs all jobs, started in this order, and waits for them. */
  void run(List<Job> jobs) throws IOException {
    if (pool == null || jobs.size() < 2) {
      for (Job job : jobs) {
        job.run();
      }
      return;
    }
    List<Callable<Void>> calls = new ArrayList<>();
    for (Job job : jobs) {
      calls.add(
          () -> {
            job.run();
            return null;
          });
    }
    try {
      for (Future<Void> done : pool.invokeAll(calls)) {
        done.get();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", e);
    } catch (ExecutionException e) {
      Throwable cause = e.getCause();
      if (cause instanceof IOException) {
        throw (IOException) cause;
      }
      if (cause instanceof RuntimeException) {
        throw (RuntimeException) cause;
      }
      throw new IOException(cause);
    }
  }

  void close() {
    if (pool != null) {
      pool.shutdownNow();
    }
  }
}
