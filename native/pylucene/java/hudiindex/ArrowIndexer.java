package hudiindex;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.store.Directory;

/**
 * Indexes the rows of Arrow record batches, one document per row, in order: a document's id
 * (segment base + id in the segment) is the position of its row.
 *
 * <p>Columns are read from the Arrow buffers by address, without a copy and without a call from
 * Python per row. A segment is built in memory, field by field, and written when it reaches the
 * given size; segments are never merged.
 *
 * <p>Not thread-safe. After an exception, the index is unusable.
 */
public final class ArrowIndexer {
  /**
   * The bytes of a string (UTF-8) or binary value as one term, indexed with documents only; of a
   * value longer than the maximum, its first 32,766 bytes.
   */
  public static final int KEYWORD = 0;

  /** Analyzed with the analyzer set by {@link #setAnalyzer}, with positions. */
  public static final int TEXT = 1;

  /** A LongPoint from a buffer of 64-bit integers. */
  public static final int LONG = 2;

  /** The single term {@link #NULL_TERM} in exactly the rows where the column is NULL. */
  public static final int NULLS = 3;

  /** A one-dimensional BinaryPoint from a buffer of 16-byte values in unsigned byte order. */
  public static final int BYTES16 = 4;

  /** {@link #TEXT} with each row's number of words, which ranking needs. */
  public static final int RANKED_TEXT = 5;

  /** The term of a {@link #NULLS} field for a NULL. */
  public static final String NULL_TERM = "1";

  /** Rows read from each column between two checks of the memory limit. */
  private static final int ROWS_AT_ONCE = 8192;

  /** Maximum memory limit: far fewer term bytes, or occurrences, than an int can number. */
  private static final long MOST_MEMORY = 1L << 30;

  private final SegmentWriter writer;
  private final Workers workers;
  private final List<ArrowField> fields = new ArrayList<>();
  private final long memory;
  private int pending;

  /**
   * @param directory the directory for the index's files
   * @param fieldNames the fields of the index, in the order of their numbers for {@link #setColumn}
   * @param kinds for each field, one of the constants above
   * @param memoryMb MiB of heap that a segment may take while it is built, including for sorting
   * @param firstSegment number of the first segment; indexes that are to be joined must have
   *     different segment numbers
   * @param threads maximum number of threads that work on different fields at once
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

  /** Sets the analyzer of a {@link #TEXT} or {@link #RANKED_TEXT} field, before the first row. */
  public void setAnalyzer(int field, Analyzer analyzer) {
    fields.get(field).setAnalyzer(analyzer);
  }

  /**
   * Sets the array that fills a field in the next batch. The caller must keep its buffers alive
   * until {@link #index} has returned.
   *
   * @param field number of the field
   * @param validityAddr address of the validity bitmap; 0: no NULLs
   * @param offsetsAddr address of the offsets of a string or binary array; 0 for other arrays
   * @param dataAddr address of the values; 0 if the array has no such buffer
   * @param largeOffsets whether the offsets are 64-bit (large_string), not 32-bit (string)
   * @param offset the array's own offset: the position of its first row in the buffers
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
   * States that the array set by {@link #setColumn} contains the elements of arrays, one after the
   * other: row r of the next batch has the elements from offset r up to offset r + 1. Not for
   * {@link #TEXT}.
   *
   * @param field number of the field
   * @param offsetsAddr address of the 64-bit offsets, one more than the batch has rows
   */
  public void setElements(int field, long offsetsAddr) {
    fields.get(field).elements = offsetsAddr;
  }

  /**
   * Indexes the first {@code rows} rows of the columns that were set. Every field needs a new
   * column for the next batch.
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
   * Heap usage of the segment, plus the additional heap for writing as many of its largest fields
   * as are written at once.
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

  /** Writes the remaining rows and the commit; nothing can be indexed afterwards. */
  public void finish() throws IOException {
    flush();
    writer.commit();
    close();
  }

  /** Releases the threads; nothing can be indexed afterwards. */
  public void close() {
    workers.close();
  }

  /** The name of the codec that writes the segments. */
  public String codec() {
    return writer.codec();
  }

  /** Number of terms of a field truncated so far because they exceed Lucene's maximum. */
  public long truncated(int field) {
    return fields.get(field).truncated;
  }

  /** Number of a field's terms, summed over the segments: an upper bound of its distinct values. */
  public long terms(int field) {
    return fields.get(field).terms;
  }
}
