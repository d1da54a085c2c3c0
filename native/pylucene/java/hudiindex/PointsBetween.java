package hudiindex;

import java.io.IOException;
import java.util.Arrays;
import org.apache.lucene.index.PointValues;
import org.apache.lucene.index.PointValues.PointTree;
import org.apache.lucene.index.PointValues.Relation;
import org.apache.lucene.util.bkd.BKDConfig;

/** Goes through a tree of points of one dimension for some of those between two. */
final class PointsBetween implements PointValues.IntersectVisitor {
  /** Points of a leaf of the tree, at most. */
  static final int LEAF = BKDConfig.DEFAULT_MAX_POINTS_IN_LEAF_NODE;

  private final byte[] low;
  private final byte[] high;
  private final RowSample rows;

  /** Of so many points one leaf is taken. */
  long leafPoints = 1;

  PointsBetween(byte[] low, byte[] high, RowSample rows) {
    this.low = low;
    this.high = high;
    this.rows = rows;
  }

  void walk(PointTree tree) throws IOException {
    Relation relation = compare(tree.getMinPackedValue(), tree.getMaxPackedValue());
    if (relation == Relation.CELL_OUTSIDE_QUERY || rows.left() == 0) {
      return;
    }
    boolean one = relation == Relation.CELL_INSIDE_QUERY && tree.size() <= leafPoints;
    if (!tree.moveToChild()) {
      if (relation == Relation.CELL_INSIDE_QUERY) {
        tree.visitDocIDs(this);
      } else {
        tree.visitDocValues(this);
      }
      return;
    }
    do {
      walk(tree);
    } while (!one && tree.moveToSibling());
    tree.moveToParent();
  }

  @Override
  public Relation compare(byte[] least, byte[] greatest) {
    if (Arrays.compareUnsigned(greatest, low) < 0 || Arrays.compareUnsigned(least, high) > 0) {
      return Relation.CELL_OUTSIDE_QUERY;
    }
    boolean inside =
        Arrays.compareUnsigned(least, low) >= 0 && Arrays.compareUnsigned(greatest, high) <= 0;
    return inside ? Relation.CELL_INSIDE_QUERY : Relation.CELL_CROSSES_QUERY;
  }

  @Override
  public void visit(int doc) {
    rows.add(doc);
  }

  @Override
  public void visit(int doc, byte[] value) {
    if (Arrays.compareUnsigned(value, low) >= 0 && Arrays.compareUnsigned(value, high) <= 0) {
      rows.add(doc);
    }
  }
}
