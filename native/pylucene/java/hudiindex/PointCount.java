package hudiindex;

import java.io.IOException;
import org.apache.lucene.index.PointValues;
import org.apache.lucene.index.PointValues.PointTree;
import org.apache.lucene.index.PointValues.Relation;

/** Counts the one-dimensional points in a range, from the inner nodes of their tree. */
final class PointCount extends RangeVisitor {
  private final boolean leaves;

  /** Points that are certainly in the range. */
  long inside;

  /** Other points that may be in the range. */
  long crossing;

  /**
   * @param leaves whether the leaves at both ends are read, too: the count is then exact
   */
  PointCount(byte[] low, byte[] high, boolean leaves) {
    super(low, high);
    this.leaves = leaves;
  }

  /** Walks the tree; little more is read than the path to each end of the range. */
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
