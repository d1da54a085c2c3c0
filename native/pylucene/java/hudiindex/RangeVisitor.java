package hudiindex;

import java.io.IOException;
import java.util.Arrays;
import org.apache.lucene.index.PointValues;
import org.apache.lucene.index.PointValues.Relation;

/** Visits the one-dimensional points in a range, both ends included. */
abstract class RangeVisitor implements PointValues.IntersectVisitor {
  private final byte[] low;
  private final byte[] high;

  RangeVisitor(byte[] low, byte[] high) {
    this.low = low;
    this.high = high;
  }

  @Override
  public final Relation compare(byte[] least, byte[] greatest) {
    if (Arrays.compareUnsigned(greatest, low) < 0 || Arrays.compareUnsigned(least, high) > 0) {
      return Relation.CELL_OUTSIDE_QUERY;
    }
    boolean inside =
        Arrays.compareUnsigned(least, low) >= 0 && Arrays.compareUnsigned(greatest, high) <= 0;
    return inside ? Relation.CELL_INSIDE_QUERY : Relation.CELL_CROSSES_QUERY;
  }

  @Override
  public final void visit(int doc, byte[] value) throws IOException {
    if (Arrays.compareUnsigned(value, low) >= 0 && Arrays.compareUnsigned(value, high) <= 0) {
      visit(doc);
    }
  }
}
