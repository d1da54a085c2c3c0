package hudiindex;

import java.io.IOException;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.store.ByteBuffersDirectory;

/**
 * Holds rows without an index against a full-text query: they are indexed in memory, as they would be
 * on disk, and asked the same.
 */
public final class TextRows {
  private static final double MEMORY_MB = 64;

  private TextRows() {}

  /**
   * Writes the matching positions in an Arrow array of strings as ascending 32-bit integers, in the
   * machine's byte order; the array's buffers are as for {@link ArrowIndexer#setColumn}.
   *
   * @param field the query's one field
   * @param rows length of the array
   * @param address where a buffer of as many ints begins
   * @return how many match
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
        return RowIds.into(searcher, query, address, rows);
      }
    }
  }
}
