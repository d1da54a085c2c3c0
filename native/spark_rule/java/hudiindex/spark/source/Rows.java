package hudiindex.spark.source;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/** What a source says when a query asks for rows. */
public sealed interface Rows {
  /** Few rows: a stream in Arrow's format, with the columns of the request in their order. */
  record InDriver(byte[] stream) implements Rows {}

  /** Many rows, which Spark's tasks read when the query runs. */
  record ByTasks(Dataset<Row> frame) implements Rows {}

  /** Spark had better scan, after all. */
  record BySpark(String reason) implements Rows {}

  /** The query has been cancelled while the source ran jobs for it. */
  record Cancelled(String message) implements Rows {}
}
