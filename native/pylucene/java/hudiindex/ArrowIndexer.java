package hudiindex;

import java.io.IOException;
import org.apache.lucene.document.Document;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexableField;

/**
 * Adds the rows of Arrow record batches to an {@link IndexWriter}, one document per row, in order.
 *
 * <p>Columns are read from the Arrow buffers by address, without a copy and without a call from
 * Python per row. With a merge policy that only merges neighbours (LogDocMergePolicy), one thread and
 * no deletes, a document's id (segment base + id in the segment) is the position of its row.
 *
 * <p>An exception out of {@link #index} leaves the writer with a part of the batch: roll it back.
 *
 * <p>Not thread-safe; one indexer per writer.
 */
public final class ArrowIndexer {
  /** UTF-8 bytes as one term, documents only; longer than the maximum: its first 32,766 bytes. */
  public static final int KEYWORD = 0;

  /** Analysed by the writer's analyser, with positions. */
  public static final int TEXT = 1;

  /** A LongPoint from a buffer of 64-bit integers. */
  public static final int LONG = 2;

  /** The one term {@link #NULL_TERM} in exactly the rows where the column is NULL. */
  public static final int NULLS = 3;

  /** What a {@link #NULLS} field holds for a NULL. */
  public static final String NULL_TERM = "1";

  private final IndexWriter writer;
  private final ArrowField[] fields;

  /**
   * @param fieldNames the fields of the index, in the order that numbers them for {@link #setColumn}
   * @param kinds for each field {@link #KEYWORD}, {@link #TEXT}, {@link #LONG} or {@link #NULLS}
   */
  public ArrowIndexer(IndexWriter writer, String[] fieldNames, int[] kinds) {
    if (fieldNames.length != kinds.length) {
      throw new IllegalArgumentException(
          fieldNames.length + " field names but " + kinds.length + " kinds");
    }
    this.writer = writer;
    fields = new ArrowField[fieldNames.length];
    for (int i = 0; i < fields.length; i++) {
      fields[i] = ArrowField.of(fieldNames[i], kinds[i], writer.getConfig().getAnalyzer());
    }
  }

  /**
   * Sets the array that fills a field in the next batch. The caller keeps its buffers alive until
   * {@link #index} has returned.
   *
   * @param field number of the field
   * @param validityAddr address of the validity bitmap; 0: no NULLs
   * @param offsetsAddr address of a string array's offsets; 0 for other arrays
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
    fields[field].column =
        new ArrowColumn(validityAddr, offsetsAddr, dataAddr, largeOffsets, offset);
  }

  /**
   * Indexes the first {@code rows} rows of the columns that were set; every field needs a new column
   * for the next batch.
   *
   * @return the number of documents in the writer
   * @throws IllegalStateException if a field has no column
   * @throws IllegalArgumentException if a column lacks a buffer that its field reads
   */
  public int index(int rows) throws IOException {
    for (ArrowField field : fields) {
      if (field.column == null) {
        throw new IllegalStateException("field " + field.name + " has no column for this batch");
      }
      if (rows > 0) { // an array of no rows may have no buffers at all
        field.requireBuffers();
      }
    }
    Document document = new Document();
    for (long row = 0; row < rows; row++) {
      document.clear();
      for (ArrowField field : fields) {
        IndexableField value = field.at(row);
        if (value != null) {
          document.add(value);
        }
      }
      writer.addDocument(document); // an empty one too: the row keeps its number
    }
    for (ArrowField field : fields) {
      field.column = null; // the caller may now free the buffers
    }
    return writer.getDocStats().maxDoc;
  }

  /** Number of terms of a field that were cut because they exceed Lucene's maximum so far. */
  public long truncated(int field) {
    return fields[field].truncated;
  }
}
