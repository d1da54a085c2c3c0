package hudiindex;

import java.io.IOException;
import org.apache.lucene.index.PointValues;
import org.apache.lucene.index.PointValues.PointTree;
import org.apache.lucene.index.PointValues.Relation;

/** Counts the points of one dimension that lie between two, by their tree's inner nodes. */
final class PointCount extends RangeVisitor {
  private final boolean leaves;

  /** Points that surely lie between. */
  long inside;

  /** Those that may, besides. */
  long crossing;

  /**
   * @param leaves whether the leaves at both ends are read, too: then nothing is left in doubt
   */
  PointCount(byte[] low, byte[] high, boolean leaves) {
    super(low, high);
    this.leaves = leaves;
  }

  /** Goes through the tree, of which hardly more is read than the path to each end. */
  PointCount of(PointValues values) throws IOException {
    walk(values.getPointTree());
    return this;
  }

  private void walk(PointTree tree) throws IOException {
    Relation relation = compare(tree.getMinPackedValue(), tree.getMaxPackedValue());
    if (relation == Relation.CELL_OUTSIDE_QUERY) {
      return;
    }
    if (relation == Relation.CELL_INSIDE_QUERY) {
      inside += tree.size();
    } else if (tree.moveToChild()) {
      do {
        walk(tree);
      } while (tree.moveToSibling());
      tree.moveToParent();
    } else if (leaves) {
      tree.visitDocValues(this);
    } else {
      crossing += tree.size();
    }
  }

  @Override
  public void visit(int doc) {
    inside++;
  }
}
