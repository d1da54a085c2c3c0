package hudiindex;

import java.io.IOException;
import org.apache.lucene.index.PointValues;
import org.apache.lucene.search.DocIdSetIterator;

/** A sample of the rows that match a query, taken from all over the index. */
final class RowSample {
  private final int[] rows;
  private final int step;
  private int base;
  private int end;
  private int found;

  /**
   * @param capacity maximum number of rows in the sample
   * @param of number of rows in the index
   */
  RowSample(int capacity, int of) {
    rows = new int[capacity];
    step = Math.max(1, of / capacity);
  }

  /** Moves on to the segment whose rows begin at {@code base}, and sets the end of its share. */
  void next(int base, int maxDoc) {
    this.base = base;
    end = Math.min(rows.length, found + Math.max(1, maxDoc / step));
  }

  /** How many more rows of the segment may be added. */
  int left() {
    return end - found;
  }

  int size() {
    return found;
  }

  void write(long address) {
    NativeMemory.write(rows, found, address);
  }

  /** Adds rows that are spread over the segment. */
  void addSpread(DocIdSetIterator all) throws IOException {
    int doc = all.nextDoc();
    while (doc != DocIdSetIterator.NO_MORE_DOCS && left() > 0) {
      add(doc);
      doc = all.advance(doc + step);
    }
  }

  /** Adds rows with a point from low to high, both included; the points are spread out. */
  void addPoints(PointValues values, byte[] low, byte[] high) throws IOException {
    PointsBetween between = new PointsBetween(low, high, this);
    long count = values.estimatePointCount(between);
    between.leafPoints = Math.max(1, count * PointsBetween.LEAF / Math.max(1, left()));
    between.walk(values.getPointTree());
  }

  void add(int doc) {
    if (left() > 0) {
      rows[found++] = base + doc;
    }
  }
}
