package hudiindex.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.ArrayDeque;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;

/**
 * How the Hudi relations of queries are read: of each query as long as it exists, and of the latest
 * ones of each thread. A query is what Spark plans under one tracker: sub-queries are optimized by
 * themselves, but under the same one. It belongs to the thread that had it analyzed, and to the one
 * that had it planned, which may be Spark's own.
 */
public final class Uses {
  private static final int QUERIES = 16;
  private static final int USES = 256;
  private static final Map<Thread, Latest> BY_THREAD = weakly();
  private static final Map<QueryPlanningTracker, Latest> BEGUN = weakly();
  private static final Map<QueryPlanningTracker, List<Use>> BY_TRACKER = weakly();

  private Uses() {}

  private static <K, V> Map<K, V> weakly() {
    return Collections.synchronizedMap(new WeakHashMap<>());
  }

  /** The calling thread has a query analyzed. */
  public static void begin() {
    QueryPlanningTracker tracker = tracker();
    if (tracker != null) {
      BEGUN.computeIfAbsent(tracker, any -> ofThisThread());
    }
  }

  /**
   * Remembers a use of the query that the calling thread is planning, instead of an earlier one of
   * the same relation: Spark optimizes a correlated sub-query by itself, and again as a part of the
   * plan that it becomes a join of.
   */
  public static void add(Use use) {
    List<Use> uses = ofThisQuery();
    for (int place = 0; place < uses.size(); place++) {
      if (uses.get(place).relation() == use.relation()) {
        uses.set(place, use);
        return;
      }
    }
    if (uses.size() < USES) {
      uses.add(use);
    }
  }

  private static List<Use> ofThisQuery() {
    QueryPlanningTracker tracker = tracker();
    List<Use> known = tracker == null ? null : BY_TRACKER.get(tracker);
    if (known != null) {
      return known;
    }
    List<Use> uses = new CopyOnWriteArrayList<>();
    Latest planning = ofThisThread();
    planning.add(uses);
    if (tracker != null) {
      BY_TRACKER.put(tracker, uses);
      Latest beginning = BEGUN.getOrDefault(tracker, planning);
      if (beginning != planning) {
        beginning.add(uses);
      }
    }
    return uses;
  }

  private static QueryPlanningTracker tracker() {
    return QueryPlanningTracker.get().getOrElse(() -> null);
  }

  private static Latest ofThisThread() {
    return BY_THREAD.computeIfAbsent(Thread.currentThread(), any -> new Latest());
  }

  /** Forgets all queries. */
  static void forget() {
    BY_THREAD.clear();
    BEGUN.clear();
    BY_TRACKER.clear();
  }

  /** The uses of a query that has been planned, as they were found. */
  static List<Use> of(QueryPlanningTracker tracker) {
    return BY_TRACKER.getOrDefault(tracker, List.of());
  }

  /** The queries of the calling thread, the oldest first: JSON, for each a list of its uses. */
  static String writtenOfThisThread() {
    ArrayNode queries = Json.array();
    for (List<Use> each : ofThisThread().queries()) {
      ArrayNode uses = queries.addArray();
      each.forEach(use -> uses.add(use.written()));
    }
    return queries.toString();
  }

  /** The latest queries of a thread, the oldest first. */
  private static final class Latest {
    private final Deque<List<Use>> queries = new ArrayDeque<>();

    synchronized void add(List<Use> uses) {
      queries.addLast(uses);
      if (queries.size() > QUERIES) {
        queries.removeFirst();
      }
    }

    synchronized List<List<Use>> queries() {
      return List.copyOf(queries);
    }
  }
}
