package hudiindex;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.store.Directory;

/**
 * Indexes the rows of Arrow record batches, one document a row, in order: a document's id (segment
 * base + id in the segment) is the position of its row.
 *
 * <p>Columns are read from the Arrow buffers by address, without a copy and without a call from
 * Python per row. A segment is held in memory, field by field, and written when it has grown to the
 * given size; segments are never merged.
 *
 * <p>Not thread-safe. An exception leaves an index that is of no use.
 */
public final class ArrowIndexer {
  /**
   * The bytes of a string (UTF-8) or binary value as one term, documents only; longer than the
   * maximum: its first 32,766 bytes.
   */
  public static final int KEYWORD = 0;

  /** Analysed by the analyser that {@link #setAnalyzer} has set, with positions. */
  public static final int TEXT = 1;

  /** A LongPoint from a buffer of 64-bit integers. */
  public static final int LONG = 2;

  /** The one term {@link #NULL_TERM} in exactly the rows where the column is NULL. */
  public static final int NULLS = 3;

  /** A BinaryPoint of one dimension from a buffer of 16-byte values in unsigned byte order. */
  public static final int BYTES16 = 4;

  /** {@link #TEXT}, with the number of each row's words, which ranking needs. */
  public static final int RANKED_TEXT = 5;

  /** What a {@link #NULLS} field holds for a NULL. */
  public static final String NULL_TERM = "1";

  /** Rows taken from each column before the memory bound is looked at. */
  private static final int ROWS_AT_ONCE = 8192;

  /** Far below what an int can number in bytes of terms, or in occurrences. */
  private static final long MOST_MEMORY = 1L << 30;

  private final SegmentWriter writer;
  private final Workers workers;
  private final List<ArrowField> fields = new ArrayList<>();
  private final long memory;
  private int pending;

  /**
   * @param directory where the index's files go
   * @param fieldNames the fields of the index, in the order that numbers them for {@link #setColumn}
   * @param kinds for each field one of the constants above
   * @param memoryMb MiB of heap that a segment in the making may take, sorting it included
   * @param firstSegment number of the first segment: of indexes that shall be joined, no two may
   *     have segments of one number
   * @param threads how many threads may work on different fields at once
   */
  public ArrowIndexer(
      Directory directory,
      String[] fieldNames,
      int[] kinds,
      double memoryMb,
      int firstSegment,
      int threads) {
    if (fieldNames.length != kinds.length) {
      throw new IllegalArgumentException(
          fieldNames.length + " field names but " + kinds.length + " kinds");
    }
    for (int i = 0; i < kinds.length; i++) {
      fields.add(ArrowField.of(fieldNames[i], kinds[i]));
    }
    memory = Math.min((long) (memoryMb * (1 << 20)), MOST_MEMORY);
    workers = new Workers(Math.max(1, Math.min(threads, kinds.length)));
    writer = new SegmentWriter(directory, firstSegment, workers);
  }

  /** Sets what analyses a {@link #TEXT} or {@link #RANKED_TEXT} field, before the first row. */
  public void setAnalyzer(int field, Analyzer analyzer) {
    fields.get(field).setAnalyzer(analyzer);
  }

  /**
   * Sets the array that fills a field in the next batch. The caller keeps its buffers alive until
   * {@link #index} has returned.
   *
   * @param field number of the field
   * @param validityAddr address of the validity bitmap; 0: no NULLs
   * @param offsetsAddr address of a string or binary array's offsets; 0 for other arrays
   * @param dataAddr address of the values; 0 if the array has no such buffer
   * @param largeOffsets whether the offsets are 64-bit (large_string) and not 32-bit (string)
   * @param offset the array's own offset: its first row's position in the buffers
   */
  public void setColumn(
      int field,
      long validityAddr,
      long offsetsAddr,
      long dataAddr,
      boolean largeOffsets,
      long offset) {
    fields.get(field).column =
        new ArrowColumn(validityAddr, offsetsAddr, dataAddr, largeOffsets, offset);
    fields.get(field).elements = 0;
  }

  /**
   * Says that the array set by {@link #setColumn} holds the elements of arrays, one behind the
   * other: row r of the next batch has those from offset r up to offset r + 1. Not for {@link
   * #TEXT}.
   *
   * @param field number of the field
   * @param offsetsAddr address of one 64-bit offset more than the batch has rows
   */
  public void setElements(int field, long offsetsAddr) {
    fields.get(field).elements = offsetsAddr;
  }

  /**
   * Indexes the first {@code rows} rows of the columns that were set; every field needs a new column
   * for the next batch.
   *
   * @return the number of rows indexed so far
   * @throws IllegalStateException if a field has no column
   * @throws IllegalArgumentException if a column lacks a buffer that its field reads
   */
  public int index(int rows) throws IOException {
    for (ArrowField field : fields) {
      field.requireColumn(rows);
    }
    for (int from = 0; from < rows; from += ROWS_AT_ONCE) {
      int to = Math.min(from + ROWS_AT_ONCE, rows);
      addToFields(from, to);
      pending += to - from;
      if (bytes() > memory) {
        flush();
      }
    }
    for (ArrowField field : fields) {
      field.column = null; // the caller may now free the buffers
    }
    return writer.rows() + pending;
  }

  private void addToFields(int from, int to) throws IOException {
    int row = pending;
    List<Workers.Job> jobs = new ArrayList<>();
    for (ArrowField field : fields) {
      jobs.add(() -> field.add(from, to, row));
    }
    workers.run(jobs);
  }

  /**
   * What the segment takes, and what writing its fields will take beside that, as many of the
   * largest as are written at once.
   */
  private long bytes() {
    long bytes = 0;
    long[] toSort = new long[fields.size()];
    for (int i = 0; i < toSort.length; i++) {
      bytes += fields.get(i).bytes();
      toSort[i] = fields.get(i).bytesToSort();
    }
    Arrays.sort(toSort);
    int atOnce = Math.min(workers.threads, toSort.length);
    return bytes + Arrays.stream(toSort, toSort.length - atOnce, toSort.length).sum();
  }

  private void flush() throws IOException {
    if (pending > 0) {
      writer.write(fields, pending);
      fields.forEach(ArrowField::clear);
      pending = 0;
    }
  }

  /** Writes what is left and the commit; nothing can be indexed afterwards. */
  public void finish() throws IOException {
    flush();
    writer.commit();
    close();
  }

  /** Lets go of the threads; nothing can be indexed afterwards. */
  public void close() {
    workers.close();
  }

  /** Number of terms of a field that were cut because they exceed Lucene's maximum so far. */
  public long truncated(int field) {
    return fields.get(field).truncated;
  }

  /** Number of terms of a field, added up over the segments: its distinct values at most. */
  public long terms(int field) {
    return fields.get(field).terms;
  }
}
