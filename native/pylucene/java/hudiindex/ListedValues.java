package hudiindex;

import java.io.IOException;
import java.util.Arrays;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.PointValues;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.NumericUtils;

/** Collects the rows of single terms, or points, of one field of an index. */
final class ListedValues {
  private static final int[] NONE = {};

  private final int most;
  private int[] rows = NONE;
  private int count;

  private ListedValues(int most) {
    this.most = most;
  }

  /** The rows with any of these terms, which are in order; null if there are more. */
  static int[] rowsOfTerms(IndexSearcher searcher, String field, BytesRef[] terms, int most)
      throws IOException {
    ListedValues found = new ListedValues(most);
    for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
      Terms ofField = leaf.reader().terms(field);
      if (ofField == null) {
        continue;
      }
      TermsEnum each = ofField.iterator();
      PostingsEnum postings = null;
      for (BytesRef term : terms) {
        if (each.seekExact(term)) {
          postings = each.postings(postings, PostingsEnum.NONE);
          int doc;
          while ((doc = postings.nextDoc()) != DocIdSetIterator.NO_MORE_DOCS) {
            found.add(leaf.docBase + doc);
          }
        }
      }
    }
    return found.sorted();
  }

  /** The rows with any of these numbers, which are in order; null if there are more. */
  static int[] rowsOfPoints(IndexSearcher searcher, String field, long[] points, int most)
      throws IOException {
    ListedValues found = new ListedValues(most);
    for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
      PointValues values = leaf.reader().getPointValues(field);
      if (values != null) {
        values.intersect(found.new Among(points, leaf.docBase));
      }
    }
    return found.sorted();
  }

  private void add(int row) {
    if (count == rows.length) {
      rows = Arrays.copyOf(rows, Math.max(8, 2 * count));
    }
    rows[count++] = row;
  }

  /** A row may have several of the values, if it is an array. */
  private int[] sorted() {
    Arrays.sort(rows, 0, count);
    int kept = 0;
    for (int at = 0; at < count; at++) {
      if (kept == 0 || rows[kept - 1] != rows[at]) {
        rows[kept++] = rows[at];
      }
    }
    return kept > most ? null : Arrays.copyOf(rows, kept);
  }

  /** Points of a tree that are among some: the tree is visited in their order. */
  private final class Among implements PointValues.IntersectVisitor {
    private final long[] points;
    private final int docBase;
    private int at;

    Among(long[] points, int docBase) {
      this.points = points;
      this.docBase = docBase;
    }

    @Override
    public void visit(int doc) {
      add(docBase + doc);
    }

    @Override
    public void visit(int doc, byte[] packed) {
      long point = NumericUtils.sortableBytesToLong(packed, 0);
      // Points of one leaf are in order, unless they are few.
      if (at > 0 && points[at - 1] >= point) {
        at = 0;
      }
      while (at < points.length && points[at] < point) {
        at++;
      }
      if (at < points.length && points[at] == point) {
        add(docBase + doc);
      }
    }

    @Override
    public PointValues.Relation compare(byte[] least, byte[] greatest) {
      long low = NumericUtils.sortableBytesToLong(least, 0);
      long high = NumericUtils.sortableBytesToLong(greatest, 0);
      int next = Arrays.binarySearch(points, low);
      at = next < 0 ? -1 - next : next;
      if (at == points.length || points[at] > high) {
        return PointValues.Relation.CELL_OUTSIDE_QUERY;
      }
      return low == high
          ? PointValues.Relation.CELL_INSIDE_QUERY
          : PointValues.Relation.CELL_CROSSES_QUERY;
    }
  }
}
