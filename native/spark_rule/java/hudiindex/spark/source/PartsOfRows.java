package hudiindex.spark.source;

import hudiindex.spark.Unchecked;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;

/**
 * Reads rows that come in parts: each is a stream in Arrow's format, after its length; at the end
 * are a length of 0 and what reading has cost.
 */
final class PartsOfRows {
  private PartsOfRows() {}

  /**
   * All parts, kept by Spark, and not by this process's heap alone.
   *
   * @param millis after which reading fails, lest a thread waits for ever
   * @throws IOException they end early, or take longer
   */
  static Rows.InParts read(SparkContext context, InputStream body, long millis) throws IOException {
    CompletableFuture.delayedExecutor(millis, TimeUnit.MILLISECONDS).execute(closing(body));
    JavaSparkContext spark = JavaSparkContext.fromSparkContext(context);
    List<Broadcast<byte[]>> parts = new ArrayList<>();
    try (DataInputStream in = new DataInputStream(new BufferedInputStream(body))) {
      for (long length = in.readLong(); length != 0; length = in.readLong()) {
        byte[] part = new byte[Math.toIntExact(length)];
        in.readFully(part);
        parts.add(spark.broadcast(part));
      }
      return new Rows.InParts(parts, new String(in.readAllBytes(), StandardCharsets.UTF_8));
    } catch (IOException | RuntimeException error) {
      parts.forEach(Broadcast::destroy);
      throw error;
    }
  }

  private static Runnable closing(InputStream body) {
    return () -> {
      try {
        body.close();
      } catch (IOException error) {
        throw Unchecked.thrown(error);
      }
    };
  }
}
