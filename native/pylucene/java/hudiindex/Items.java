package hudiindex;

import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntConsumer;

/** Items of work for the JVM's threads and the calling one, which asks whether they are wanted. */
final class Items implements Runnable {
  private static final long ASKED_EVERY = 50;

  private final int count;
  private final IntConsumer work;
  private final AtomicInteger next = new AtomicInteger();
  private final AtomicInteger done = new AtomicInteger();
  private volatile Throwable failure;

  private Items(int count, IntConsumer work) {
    this.count = count;
    this.work = work;
  }

  /**
   * Does the work for each number below {@code count}, and waits for all threads. After a failure,
   * which is thrown, no other item is begun.
   */
  static void each(int count, Effort effort, IntConsumer work) {
    effort.take(0);
    Items items = new Items(count, work);
    int others = Math.min(count - 1, ForkJoinPool.getCommonPoolParallelism());
    for (int i = 0; i < others; i++) {
      ForkJoinPool.commonPool().execute(items);
    }
    items.run();
    items.await(effort);
    if (items.failure instanceof Error) {
      throw (Error) items.failure;
    }
    if (items.failure != null) {
      throw (RuntimeException) items.failure;
    }
  }

  @Override
  public void run() {
    for (int i = next.getAndIncrement(); i < count; i = next.getAndIncrement()) {
      try {
        if (failure == null) {
          work.accept(i);
        }
      } catch (RuntimeException | Error e) {
        failure = e;
      } finally {
        if (done.incrementAndGet() == count) {
          synchronized (this) {
            notifyAll();
          }
        }
      }
    }
  }

  private synchronized void await(Effort effort) {
    boolean interrupted = false;
    while (done.get() < count) {
      effort.isOver(); // the other threads see it
      try {
        wait(ASKED_EVERY);
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
