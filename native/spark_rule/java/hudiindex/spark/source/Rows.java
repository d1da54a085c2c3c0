package hudiindex.spark.source;

import java.util.List;
import java.util.Optional;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/** What a source says when a query asks for rows. */
public sealed interface Rows {
  /**
   * Few rows: a stream in Arrow's format, with the columns of the request in their order.
   *
   * @param cost in JSON, what it took to read them; empty if that is known elsewhere
   */
  record InDriver(byte[] stream, Optional<String> cost) implements Rows {}

  /**
   * Many rows, which the source has read: such streams, which Spark keeps in memory or on disk.
   *
   * @param cost in JSON, what it took to read them
   */
  record InParts(List<Broadcast<byte[]>> streams, String cost) implements Rows {}

  /** Many rows, which Spark's tasks read when the query runs. */
  record ByTasks(Dataset<Row> frame) implements Rows {}

  /** Spark had better scan, after all. */
  record BySpark(String reason) implements Rows {}

  /** The query has been cancelled while the source ran jobs for it. */
  record Cancelled(String message) implements Rows {}
}
