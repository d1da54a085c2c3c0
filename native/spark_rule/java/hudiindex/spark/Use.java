package hudiindex.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hudiindex.spark.source.Decision;
import hudiindex.spark.source.Request;
import java.util.concurrent.atomic.AtomicLong;

/** How one Hudi relation of a query is read; complete once the query has run. */
public final class Use {
  private static final AtomicLong LATEST = new AtomicLong();

  private final long number = LATEST.incrementAndGet();
  private final long relation;
  private final String table;
  private final Request request;
  private final Decision decision;
  private volatile String reader;
  private volatile String reason;
  private volatile long rows = -1;
  private volatile JsonNode cost;

  private Use(long relation, String table, Request request, Decision decision) {
    this.relation = relation;
    this.table = table;
    this.request = request;
    this.decision = decision;
    this.reader = decision.reader();
    this.reason = decision.reason();
  }

  /**
   * A relation with a decision on its request.
   *
   * @param relation identifies it in the query
   */
  public static Use ofRequest(long relation, Request request, Decision decision) {
    return new Use(relation, request.table(), request, decision);
  }

  /** A relation without a request. */
  public static Use withoutRequest(long relation, String table, String reason) {
    return new Use(relation, table, null, Decision.spark(reason));
  }

  /** Unlike that of any other use. */
  public long number() {
    return number;
  }

  /** What identifies the relation in its query. */
  public long relation() {
    return relation;
  }

  /** The driver has read this many rows, more or fewer than were expected. */
  public void read(long number) {
    rows = number;
  }

  /** What reading has cost, in JSON. */
  public void cost(String written) {
    cost = Json.read(written);
  }

  /** Another reader than was decided, and why. */
  public void readBy(String other, String because) {
    reader = other;
    reason = because;
  }

  ObjectNode written() {
    ObjectNode result = Json.object().put("number", number).put("table", table);
    result.put("reader", reader);
    result.put("reason", reason);
    if (request != null) {
      result.set("request", request.json());
    }
    result.set("decision", decision.json());
    if (rows >= 0) {
      result.put("rows", rows);
    }
    if (cost != null) {
      result.set("observed", cost);
    }
    return result;
  }
}
