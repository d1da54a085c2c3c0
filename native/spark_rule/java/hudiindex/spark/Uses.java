package hudiindex.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.lang.ref.WeakReference;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;

/**
 * The latest queries of each thread and how their Hudi relations are read. A query is what Spark
 * plans under one tracker: sub-queries are optimized by themselves, but under the same one.
 */
public final class Uses {
  private static final int QUERIES = 16;
  private static final int USES = 256;
  private static final ThreadLocal<Deque<Query>> LATEST = ThreadLocal.withInitial(ArrayDeque::new);

  private Uses() {}

  private record Query(WeakReference<Object> tracker, List<Use> uses) {}

  /** Remembers a use of the query that the calling thread is planning. */
  public static void add(Use use) {
    List<Use> uses = ofThisQuery();
    if (uses.size() < USES) {
      uses.add(use);
    }
  }

  /** Remembers a use instead of an earlier one of the same relation. */
  public static void replace(Use use) {
    List<Use> uses = ofThisQuery();
    for (int place = 0; place < uses.size(); place++) {
      if (uses.get(place).relation() == use.relation()) {
        uses.set(place, use);
        return;
      }
    }
    add(use);
  }

  private static List<Use> ofThisQuery() {
    Deque<Query> latest = LATEST.get();
    Object tracker = QueryPlanningTracker.get().getOrElse(() -> null);
    Query query = latest.peekLast();
    if (query == null || tracker == null || query.tracker().get() != tracker) {
      query = new Query(new WeakReference<>(tracker), new ArrayList<>());
      latest.addLast(query);
      if (latest.size() > QUERIES) {
        latest.removeFirst();
      }
    }
    return query.uses();
  }

  /** The queries of the calling thread, the oldest first: JSON, for each a list of its uses. */
  static String ofThisThread() {
    ArrayNode queries = Json.array();
    for (Query each : LATEST.get()) {
      ArrayNode uses = queries.addArray();
      each.uses().forEach(use -> uses.add(use.written()));
    }
    return queries.toString();
  }
}
