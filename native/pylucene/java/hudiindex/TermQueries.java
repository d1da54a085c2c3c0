package hudiindex;

import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TermInSetQuery;
import org.apache.lucene.util.BytesRef;

/** Term queries whose arguments Python would create one by one. */
public final class TermQueries {
  private TermQueries() {}

  /**
   * Documents with any of the given terms.
   *
   * @param terms the terms, one after the other
   * @param ends the end of each term
   */
  public static Query anyOf(String field, byte[] terms, int[] ends) {
    List<BytesRef> each = new ArrayList<>(ends.length);
    int start = 0;
    for (int end : ends) {
      each.add(new BytesRef(terms, start, end - start));
      start = end;
    }
    return new TermInSetQuery(field, each);
  }
}
