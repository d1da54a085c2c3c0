package hudiindex.spark.source;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.SparkSession;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Asks a source: within a deadline, not again what it has just said, and not at all for a while
 * after it has failed repeatedly. No lock is held during a call.
 */
public final class Decisions {
  private static final Logger LOG = LoggerFactory.getLogger(Decisions.class);
  private static final int REMEMBERED = 256;

  /** An index may be built, dropped or cleaned at any time; answers never hang on it, times do. */
  private static final long VALID_NANOS = TimeUnit.SECONDS.toNanos(10);

  private static final int FAILURES = 3;
  private static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(30);

  private final Source source;
  private final Deadline deadline;
  private final Breaker breaker = new Breaker(FAILURES, PAUSE_NANOS, System::nanoTime);
  private final Map<Request, Known> known = Collections.synchronizedMap(new Latest());

  private record Known(Decision decision, long since) {}

  /** The latest requests. */
  private static final class Latest extends LinkedHashMap<Request, Known> {
    private static final long serialVersionUID = 1L;

    Latest() {
      super(16, 0.75f, true);
    }

    @Override
    protected boolean removeEldestEntry(Map.Entry<Request, Known> eldest) {
      return size() > REMEMBERED;
    }
  }

  public Decisions(Source source) {
    this.source = source;
    this.deadline = new Deadline(source::leave);
  }

  /** Who reads a request's rows: Spark, unless the source says otherwise within the time. */
  public Decision of(Request request, long millis) throws InterruptedException {
    Known before = known.get(request);
    if (before != null && System.nanoTime() - before.since() < VALID_NANOS) {
      return before.decision();
    }
    try {
      return call(millis, () -> decided(request));
    } catch (SourceFailed error) {
      return Decision.spark("the index was not asked: " + error.getMessage());
    }
  }

  /** Forgets all decisions. */
  public void forget() {
    known.clear();
  }

  /** A request's rows. Throws SourceFailed if there are none in time. */
  public Rows rows(SparkSession session, Request request, long use, long millis, Wrapper wrapper)
      throws SourceFailed, InterruptedException {
    return call(millis, wrapper.wrapped(() -> source.rows(session, request.text(), use)));
  }

  /** Makes a call on another thread what it would be on the present one. */
  public interface Wrapper {
    <T> Callable<T> wrapped(Callable<T> call);
  }

  /** On the other thread, so that an answer that comes too late serves the next query. */
  private Decision decided(Request request) throws Exception {
    Decision decision = Decision.read(source.decide(request.text()));
    known.put(request, new Known(decision, System.nanoTime()));
    return decision;
  }

  private <T> T call(long millis, Callable<T> call) throws SourceFailed, InterruptedException {
    if (!breaker.allowsCall()) {
      throw new SourceFailed("it has failed, and is tried again later");
    }
    try {
      T answer = deadline.within(millis, call);
      breaker.succeeded();
      return answer;
    } catch (SourceFailed error) {
      if (breaker.failed(error.isLasting())) {
        LOG.warn(
            "{}: Spark scans, since the index fails: {}. It is tried again every {} s. {}",
            error.code(),
            error.getMessage().replaceAll("\\.$", ""),
            TimeUnit.NANOSECONDS.toSeconds(PAUSE_NANOS),
            error.remedy());
      } else {
        LOG.debug("The index has failed", error);
      }
      throw error;
    }
  }
}
