package hudiindex;

import java.io.IOException;
import org.apache.lucene.index.PointValues.PointTree;
import org.apache.lucene.index.PointValues.Relation;
import org.apache.lucene.util.bkd.BKDConfig;

/** Walks a tree of one-dimensional points and collects some of those in a range. */
final class PointsBetween extends RangeVisitor {
  /** Maximum number of points in a leaf of the tree. */
  static final int LEAF = BKDConfig.DEFAULT_MAX_POINTS_IN_LEAF_NODE;

  private final RowSample rows;

  /** One leaf is taken per this many points. */
  long leafPoints = 1;

  PointsBetween(byte[] low, byte[] high, RowSample rows) {
    super(low, high);
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
  public void visit(int doc) {
    rows.add(doc);
  }
}
