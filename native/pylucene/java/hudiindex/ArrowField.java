package hudiindex;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.HashMap;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.index.DocValuesType;
import org.apache.lucene.index.FieldInfo;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.VectorEncoding;
import org.apache.lucene.index.VectorSimilarityFunction;
import org.apache.lucene.util.ArrayUtil;

/** A field of the index, the Arrow column that fills it, and its content in the next segment. */
abstract class ArrowField {
  final String name;
  ArrowColumn column;

  /** Address of the 64-bit offsets of each row's elements; 0: one value per row. */
  long elements;

  long truncated;

  /** Number of terms in the segments written so far. */
  long terms;

  ArrowField(String name) {
    this.name = name;
  }

  static ArrowField of(String name, int kind) {
    switch (kind) {
      case ArrowIndexer.KEYWORD:
        return new Keyword(name);
      case ArrowIndexer.TEXT:
        return new Text(name, false);
      case ArrowIndexer.RANKED_TEXT:
        return new Text(name, true);
      case ArrowIndexer.LONG:
        return new Long(name);
      case ArrowIndexer.NULLS:
        return new Nulls(name);
      case ArrowIndexer.BYTES16:
        return new Bytes16(name);
      default:
        throw new IllegalArgumentException("field " + name + " has the unknown kind " + kind);
    }
  }

  void setAnalyzer(Analyzer analyzer) {
    throw new IllegalArgumentException("field " + name + " is not analyzed");
  }

  /** Rejects, before any row is read, a column that lacks a buffer that this field reads. */
  final void requireColumn(int rows) {
    if (column == null) {
      throw new IllegalStateException("field " + name + " has no column for this batch");
    }
    long values = elements == 0 ? rows : NativeMemory.getLong(elements + 8L * rows);
    if (values > 0) { // an array without values may have no buffers at all
      requireBuffers();
    }
  }

  abstract void requireBuffers();

  final void require(boolean present, String buffer) {
    if (!present) {
      throw new IllegalArgumentException("field " + name + " needs the " + buffer + " buffer");
    }
  }

  /** Adds the batch's rows [from, to); the first is row {@code segmentRow} of the segment. */
  void add(int from, int to, int segmentRow) {
    for (int row = from; row < to; row++, segmentRow++) {
      if (elements == 0) {
        addValues(row, row + 1, segmentRow);
      } else {
        addValues(
            NativeMemory.getLong(elements + 8L * row),
            NativeMemory.getLong(elements + 8L * (row + 1)),
            segmentRow);
      }
    }
  }

  /** Adds the column's values [from, to), which belong to one row of the segment. */
  abstract void addValues(long from, long to, int row);

  abstract boolean isEmpty();

  /** Heap usage in bytes. */
  abstract long bytes();

  /** Additional heap in bytes that writing the field takes. */
  abstract long bytesToSort();

  /** Discards what was written. */
  abstract void clear();

  abstract FieldInfo info(int number);

  /** The field's terms in order; the field is empty afterwards. */
  SortedTerms sortedTerms() {
    throw new IllegalStateException("field " + name + " has no terms");
  }

  Points points() {
    throw new IllegalStateException("field " + name + " has no points");
  }

  /**
   * The number of words of each row of the segment, in Lucene's encoding, 0 for none; null if the
   * field cannot be ranked.
   */
  byte[] lengths(int rows) {
    return null;
  }

  final FieldInfo info(int number, IndexOptions options, boolean ranked, int pointBytes) {
    int dimensions = pointBytes > 0 ? 1 : 0;
    return new FieldInfo(
        name,
        number,
        false, // term vectors
        options != IndexOptions.NONE && !ranked, // no norms
        false, // payloads
        options,
        DocValuesType.NONE,
        -1,
        new HashMap<>(),
        dimensions,
        dimensions,
        pointBytes,
        0,
        VectorEncoding.FLOAT32,
        VectorSimilarityFunction.EUCLIDEAN,
        false,
        false);
  }

  /** Fields that contain terms. */
  private abstract static class OfTerms extends ArrowField {
    Occurrences occurrences = new Occurrences();
    private final IndexOptions options;

    OfTerms(String name, IndexOptions options) {
      super(name);
      this.options = options;
    }

    private boolean withPositions() {
      return options != IndexOptions.DOCS;
    }

    @Override
    boolean isEmpty() {
      return occurrences.isEmpty();
    }

    @Override
    long bytes() {
      return occurrences.bytes();
    }

    @Override
    long bytesToSort() {
      return occurrences.bytesToSort(withPositions());
    }

    @Override
    void clear() {
      occurrences = new Occurrences();
    }

    @Override
    FieldInfo info(int number) {
      return info(number, options, false, 0);
    }

    @Override
    SortedTerms sortedTerms() {
      Occurrences written = occurrences;
      clear();
      terms += written.dictionary.size();
      return new SortedTerms(
          written.sorted(withPositions()), withPositions(), written.filledRows());
    }
  }

  private static final class Keyword extends OfTerms {
    private byte[] value = new byte[64];

    Keyword(String name) {
      super(name, IndexOptions.DOCS);
    }

    @Override
    void addValues(long from, long to, int row) {
      int count = 0;
      for (long at = from; at < to; at++) {
        if (!column.isNull(at)) {
          int length = column.byteLength(at);
          if (length > IndexWriter.MAX_TERM_LENGTH) {
            length = IndexWriter.MAX_TERM_LENGTH;
            truncated++;
          }
          value = ArrayUtil.growNoCopy(value, length);
          column.copy(at, value, length);
          occurrences.add(value, 0, length);
          count++;
        }
      }
      if (count > 0) {
        occurrences.endRow(row, count);
      }
    }

    @Override
    void requireBuffers() {
      require(column.hasOffsets(), "offsets");
    }
  }

  private static final class Text extends OfTerms {
    private static final IndexOptions OPTIONS = IndexOptions.DOCS_AND_FREQS_AND_POSITIONS;

    private final boolean ranked;
    private TextTerms text;

    Text(String name, boolean ranked) {
      super(name, OPTIONS);
      this.ranked = ranked;
    }

    @Override
    FieldInfo info(int number) {
      return info(number, OPTIONS, ranked, 0);
    }

    @Override
    byte[] lengths(int rows) {
      return ranked ? occurrences.lengths(rows) : null;
    }

    @Override
    void setAnalyzer(Analyzer analyzer) {
      text = new TextTerms(name, analyzer);
    }

    @Override
    void addValues(long from, long to, int row) {
      if (!column.isNull(from)) {
        truncated += text.add(column, from, occurrences, row);
      }
    }

    @Override
    void requireBuffers() {
      require(column.hasOffsets(), "offsets");
      if (text == null) {
        throw new IllegalStateException("field " + name + " has no analyzer");
      }
      if (elements != 0) {
        throw new IllegalArgumentException("field " + name + ": arrays are not analyzed");
      }
    }
  }

  private static final class Nulls extends OfTerms {
    private static final byte[] TERM = ArrowIndexer.NULL_TERM.getBytes();

    Nulls(String name) {
      super(name, IndexOptions.DOCS);
    }

    @Override
    void add(int from, int to, int segmentRow) {
      if (column.hasNulls()) {
        super.add(from, to, segmentRow);
      }
    }

    @Override
    void addValues(long from, long to, int row) {
      for (long at = from; at < to; at++) {
        if (column.isNull(at)) {
          occurrences.add(TERM, 0, TERM.length);
          occurrences.endRow(row, 1);
          return;
        }
      }
    }

    @Override
    void requireBuffers() {} // a column without a validity buffer has no NULLs
  }

  /** Fields that contain points. */
  private abstract static class OfPoints extends ArrowField {
    private final int width;
    Points points;

    OfPoints(String name, int width) {
      super(name);
      this.width = width;
      clear();
    }

    @Override
    void addValues(long from, long to, int row) {
      for (long at = from; at < to; at++) {
        if (!column.isNull(at)) {
          byte[] page = points.add(row);
          write(at, page, points.newest());
        }
      }
    }

    /** Writes the value as {@code width} bytes that sort in unsigned order. */
    abstract void write(long at, byte[] target, int offset);

    @Override
    boolean isEmpty() {
      return points.isEmpty();
    }

    @Override
    long bytes() {
      return points.bytes();
    }

    @Override
    long bytesToSort() {
      return points.bytesToSort();
    }

    @Override
    final void clear() {
      points = new Points(width);
    }

    @Override
    FieldInfo info(int number) {
      return info(number, IndexOptions.NONE, false, width);
    }

    @Override
    Points points() {
      return points;
    }

    @Override
    void requireBuffers() {
      require(column.hasData(), "data");
    }
  }

  private static final class Long extends OfPoints {
    private static final VarHandle LONGS =
        MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);

    Long(String name) {
      super(name, java.lang.Long.BYTES);
    }

    @Override
    void write(long at, byte[] target, int offset) {
      LONGS.set(target, offset, column.longAt(at) ^ java.lang.Long.MIN_VALUE);
    }
  }

  private static final class Bytes16 extends OfPoints {
    private static final int WIDTH = 16;
    private final byte[] value = new byte[WIDTH];

    Bytes16(String name) {
      super(name, WIDTH);
    }

    @Override
    void write(long at, byte[] target, int offset) {
      column.copyFixed(at, value, WIDTH);
      System.arraycopy(value, 0, target, offset, WIDTH);
    }
  }
}
