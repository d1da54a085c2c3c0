package hudiindex;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.lucene.document.BinaryPoint;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TermInSetQuery;
import org.apache.lucene.util.BytesRef;

/** Queries for any of many values, which Python cannot create, or only one by one. */
public final class ListQueries {
  private ListQueries() {}

  /**
   * Documents with any of the given terms.
   *
   * @param terms the terms, one after the other
   * @param ends the end of each term
   */
  public static Query anyTerm(String field, byte[] terms, int[] ends) {
    List<BytesRef> each = new ArrayList<>(ends.length);
    int start = 0;
    for (int end : ends) {
      each.add(new BytesRef(terms, start, end - start));
      start = end;
    }
    return new TermInSetQuery(field, each);
  }

  /**
   * Documents with any of the given values in a field of {@link BinaryPoint}s.
   *
   * @param values the values, one after the other
   * @param width bytes per value
   */
  public static Query anyPoint(String field, byte[] values, int width) {
    byte[][] points = new byte[values.length / width][];
    for (int i = 0; i < points.length; i++) {
      points[i] = Arrays.copyOfRange(values, i * width, (i + 1) * width);
    }
    return BinaryPoint.newSetQuery(field, points);
  }
}
