package hudiindex;

import java.util.Arrays;
import org.apache.lucene.document.BinaryPoint;
import org.apache.lucene.search.Query;

/** Point queries whose arguments are arrays of arrays, which Python cannot create. */
public final class PointQueries {
  private PointQueries() {}

  /**
   * Documents with any of the given values in a field of {@link BinaryPoint}s.
   *
   * @param values the values, one after the other
   * @param width bytes per value
   */
  public static Query anyOf(String field, byte[] values, int width) {
    byte[][] points = new byte[values.length / width][];
    for (int i = 0; i < points.length; i++) {
      points[i] = Arrays.copyOfRange(values, i * width, (i + 1) * width);
    }
    return BinaryPoint.newSetQuery(field, points);
  }
}
