package hudiindex;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.memory.MemoryIndex;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.store.ByteBuffersDirectory;

/**
 * Matches rows without an index against a full-text query: they are indexed in memory, as they
 * would be on disk, and queried in the same way. A few rows get an index each, which is faster.
 */
public final class TextRows {
  private static final double MEMORY_MB = 64;
  private static final int FEW_ROWS = 64;
  private static final int FEW_BYTES = 1 << 16;

  private TextRows() {}

  /**
   * Writes the matching positions in an Arrow array of strings as ascending 32-bit integers, in the
   * machine's byte order; the array's buffers are as for {@link ArrowIndexer#setColumn}.
   *
   * @param field the query's only field
   * @param rows length of the array
   * @param address address of a buffer of as many ints
   * @return the number of matches
   */
  public static int into(
      Analyzer analyzer,
      String field,
      Query query,
      long validityAddr,
      long offsetsAddr,
      long dataAddr,
      boolean largeOffsets,
      long offset,
      int rows,
      long address)
      throws IOException {
    ArrowColumn texts = new ArrowColumn(validityAddr, offsetsAddr, dataAddr, largeOffsets, offset);
    if (areFew(texts, rows)) {
      return oneByOne(analyzer, field, query, texts, rows, address);
    }
    int[] kinds = {ArrowIndexer.TEXT};
    try (ByteBuffersDirectory directory = new ByteBuffersDirectory()) {
      ArrowIndexer indexer =
          new ArrowIndexer(directory, new String[] {field}, kinds, MEMORY_MB, 0, 1);
      indexer.setAnalyzer(0, analyzer);
      indexer.setColumn(0, validityAddr, offsetsAddr, dataAddr, largeOffsets, offset);
      indexer.index(rows);
      indexer.finish();
      try (DirectoryReader reader = DirectoryReader.open(directory)) {
        IndexSearcher searcher = new IndexSearcher(reader);
        searcher.setQueryCache(null);
        return RowIds.into(searcher, query, address, rows, Long.MAX_VALUE);
      }
    }
  }

  private static boolean areFew(ArrowColumn texts, int rows) {
    long bytes = 0;
    for (int row = 0; row < rows && rows <= FEW_ROWS; row++) {
      if (!texts.isNull(row)) {
        int length = texts.byteLength(row);
        // A longer text may have a word that exceeds the maximum length of a term.
        bytes += length > IndexWriter.MAX_TERM_LENGTH ? FEW_BYTES : length;
      }
    }
    return rows <= FEW_ROWS && bytes < FEW_BYTES;
  }

  private static int oneByOne(
      Analyzer analyzer, String field, Query query, ArrowColumn texts, int rows, long address)
      throws IOException {
    int[] found = new int[rows];
    int count = 0;
    MemoryIndex index = new MemoryIndex();
    for (int row = 0; row < rows; row++) {
      if (texts.isNull(row)) {
        continue;
      }
      byte[] utf8 = new byte[texts.byteLength(row)];
      texts.copy(row, utf8, utf8.length);
      index.reset();
      index.addField(field, new String(utf8, StandardCharsets.UTF_8), analyzer);
      if (index.createSearcher().count(query) > 0) {
        found[count++] = row;
      }
    }
    NativeMemory.write(found, count, address);
    return count;
  }
}
