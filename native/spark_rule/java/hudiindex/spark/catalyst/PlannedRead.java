package hudiindex.spark.catalyst;

import hudiindex.spark.Use;
import hudiindex.spark.source.Decision;
import hudiindex.spark.source.Decisions;
import hudiindex.spark.source.Request;

/**
 * A relation's request and the decision on it, made while the query was planned. Equal for equal
 * requests, so that Spark reads equal relations of a plan once.
 */
record PlannedRead(
    HudiFiles files, Request request, Decision decision, Decisions decisions, Use use) {
  /** What EXPLAIN shows. */
  String shown() {
    String indexes = String.join(", ", decision.indexes()); // none if it rules out all files
    String by = indexes.isEmpty() ? "by " : "index " + indexes + ", by ";
    return by + decision.reader() + ": " + decision.reason();
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
