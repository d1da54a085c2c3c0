package hudiindex;

import java.io.IOException;
import org.apache.lucene.codecs.MutablePointTree;
import org.apache.lucene.codecs.PointsReader;
import org.apache.lucene.index.PointValues;
import org.apache.lucene.util.ArrayUtil;
import org.apache.lucene.util.BytesRef;

/** The one-dimensional points of a segment, which Lucene's codec sorts in place. */
final class Points extends MutablePointTree {
  private static final int BITS = 13;
  private static final int PAGE = 1 << BITS;
  private static final int MASK = PAGE - 1;

  private final int width;
  private final IntPages rows = new IntPages();
  private byte[][] pages = new byte[8][];
  private int pageCount;
  private int filledRows;
  private int lastRow = -1;

  /** Temporary copies for the codec's stable sort. */
  private byte[] savedValues;

  private int[] savedRows;

  /**
   * @param width bytes per value
   */
  Points(int width) {
    this.width = width;
  }

  /** Makes room for one more value, which the caller writes at {@link #newest} of the page. */
  byte[] add(int row) {
    int page = rows.size() >>> BITS;
    if (page == pageCount) {
      if (pageCount == pages.length) {
        pages = ArrayUtil.grow(pages);
      }
      pages[pageCount++] = new byte[PAGE * width];
    }
    rows.add(row);
    if (row != lastRow) {
      filledRows++;
      lastRow = row;
    }
    return pages[page];
  }

  int newest() {
    return (rows.size() - 1 & MASK) * width;
  }

  boolean isEmpty() {
    return rows.size() == 0;
  }

  long bytes() {
    return rows.bytes() + (long) PAGE * width * pageCount;
  }

  long bytesToSort() {
    return (long) rows.size() * (width + 4);
  }

  /** This field in the form that the codec expects. */
  PointsReader reader() {
    return new PointsReader() {
      @Override
      public void checkIntegrity() {}

      @Override
      public PointValues getValues(String field) {
        return new Values();
      }

      @Override
      public void close() {}
    };
  }

  private final class Values extends PointValues {
    @Override
    public PointTree getPointTree() {
      return Points.this;
    }

    @Override
    public byte[] getMinPackedValue() {
      throw new UnsupportedOperationException(); // the codec computes them itself
    }

    @Override
    public byte[] getMaxPackedValue() {
      throw new UnsupportedOperationException();
    }

    @Override
    public int getNumDimensions() {
      return 1;
    }

    @Override
    public int getNumIndexDimensions() {
      return 1;
    }

    @Override
    public int getBytesPerDimension() {
      return width;
    }

    @Override
    public long size() {
      return rows.size();
    }

    @Override
    public int getDocCount() {
      return filledRows;
    }
  }

  @Override
  public long size() {
    return rows.size();
  }

  @Override
  public void getValue(int index, BytesRef value) {
    value.bytes = pages[index >>> BITS];
    value.offset = (index & MASK) * width;
    value.length = width;
  }

  @Override
  public byte getByteAt(int index, int position) {
    return pages[index >>> BITS][(index & MASK) * width + position];
  }

  @Override
  public int getDocID(int index) {
    return rows.get(index);
  }

  @Override
  public void swap(int i, int j) {
    byte[] pageI = pages[i >>> BITS];
    byte[] pageJ = pages[j >>> BITS];
    int atI = (i & MASK) * width;
    int atJ = (j & MASK) * width;
    for (int k = 0; k < width; k++) {
      byte value = pageI[atI + k];
      pageI[atI + k] = pageJ[atJ + k];
      pageJ[atJ + k] = value;
    }
    int row = rows.get(i);
    rows.set(i, rows.get(j));
    rows.set(j, row);
  }

  @Override
  public void save(int i, int j) {
    if (savedRows == null) {
      savedRows = new int[rows.size()];
      savedValues = new byte[Math.multiplyExact(rows.size(), width)];
    }
    savedRows[j] = rows.get(i);
    System.arraycopy(pages[i >>> BITS], (i & MASK) * width, savedValues, j * width, width);
  }

  @Override
  public void restore(int i, int j) {
    if (savedRows != null) {
      for (int k = i; k < j; k++) {
        rows.set(k, savedRows[k]);
        System.arraycopy(savedValues, k * width, pages[k >>> BITS], (k & MASK) * width, width);
      }
    }
  }

  @Override
  public void visitDocValues(PointValues.IntersectVisitor visitor) throws IOException {
    byte[] value = new byte[width];
    for (int i = 0; i < rows.size(); i++) {
      System.arraycopy(pages[i >>> BITS], (i & MASK) * width, value, 0, width);
      visitor.visit(rows.get(i), value);
    }
  }
}
