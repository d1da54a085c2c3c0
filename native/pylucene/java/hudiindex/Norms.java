package hudiindex;

import java.util.Map;
import org.apache.lucene.codecs.NormsProducer;
import org.apache.lucene.index.FieldInfo;
import org.apache.lucene.index.NumericDocValues;

/** The number of words of each row of a segment in the rankable fields, in Lucene's encoding. */
final class Norms extends NormsProducer {
  private final Map<String, byte[]> lengths;

  /**
   * @param lengths by field, for every row of the segment; 0 if the row has no word
   */
  Norms(Map<String, byte[]> lengths) {
    this.lengths = lengths;
  }

  @Override
  public NumericDocValues getNorms(FieldInfo field) {
    return new OfRows(lengths.get(field.name));
  }

  @Override
  public void checkIntegrity() {}

  @Override
  public void close() {}

  private static final class OfRows extends NumericDocValues {
    private final byte[] lengths;
    private int row = -1;

    OfRows(byte[] lengths) {
      this.lengths = lengths;
    }

    @Override
    public long longValue() {
      return lengths[row];
    }

    @Override
    public boolean advanceExact(int target) {
      row = target;
      return lengths[target] != 0;
    }

    @Override
    public int docID() {
      return row;
    }

    @Override
    public int nextDoc() {
      return advance(row + 1);
    }

    @Override
    public int advance(int target) {
      for (row = target; row < lengths.length; row++) {
        if (lengths[row] != 0) {
          return row;
        }
      }
      return row = NO_MORE_DOCS;
    }

    @Override
    public long cost() {
      return lengths.length;
    }
  }
}
