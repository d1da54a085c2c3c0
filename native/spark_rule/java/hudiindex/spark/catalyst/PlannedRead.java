package hudiindex.spark.catalyst;

import hudiindex.spark.Use;
import hudiindex.spark.source.Decision;
import hudiindex.spark.source.Decisions;
import hudiindex.spark.source.Request;
import java.util.Map;

/**
 * A relation's request and the decision on it, made while the query was planned. Equal for equal
 * requests, so that Spark reads equal relations of a plan once.
 *
 * @param computed the columns with full-text calls, by the numbers of their expression ids
 */
record PlannedRead(
    HudiFiles files,
    Request request,
    Decision decision,
    Decisions decisions,
    Use use,
    Map<Long, String> computed) {
  /** That of a scan. */
  static PlannedRead of(
      HudiScan scan, Request request, Decision decision, Decisions decisions, Use use) {
    return new PlannedRead(scan.files(), request, decision, decisions, use, scan.computed());
  }

  /** What EXPLAIN shows. */
  String shown() {
    String indexes = String.join(", ", decision.indexes()); // none if it rules out all files
    String by = indexes.isEmpty() ? "" : "index " + indexes + ", ";
    String reader = decision.isUndecided() ? decision.reader() : "by " + decision.reader();
    return by + reader + ": " + decision.reason();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof PlannedRead that && that.request.equals(request);
  }

  @Override
  public int hashCode() {
    return request.hashCode();
  }
}
