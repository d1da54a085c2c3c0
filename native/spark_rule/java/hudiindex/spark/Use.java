package hudiindex.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import hudiindex.spark.source.Decision;
import hudiindex.spark.source.Request;

/** How one Hudi relation of a query is read; complete once the query has run. */
public final class Use {
  private final String table;
  private final Request request;
  private final Decision decision;
  private volatile String reader;
  private volatile String reason;
  private volatile long rows = -1;

  private Use(String table, Request request, Decision decision) {
    this.table = table;
    this.request = request;
    this.decision = decision;
    this.reader = decision.reader();
    this.reason = decision.reason();
  }

  /** A relation that the index was asked about. */
  public static Use asked(Request request, Decision decision) {
    return new Use(request.table(), request, decision);
  }

  /** A relation that it was not asked about. */
  public static Use notAsked(String table, String reason) {
    return new Use(table, null, Decision.spark(reason));
  }

  /** The driver has read this many rows, more or fewer than were expected. */
  public void read(long number) {
    rows = number;
  }

  /** Another reader than was decided, and why. */
  public void readBy(String other, String because) {
    reader = other;
    reason = because;
  }

  /** Whether the index was to find the rows. */
  public boolean isByIndex() {
    return decision.isByIndex();
  }

  ObjectNode written() {
    ObjectNode found = Json.object().put("table", table).put("reader", reader);
    found.put("reason", reason);
    if (request != null) {
      found.set("request", request.json());
    }
    found.set("decision", decision.json());
    if (rows >= 0) {
      found.put("rows", rows);
    }
    return found;
  }
}
