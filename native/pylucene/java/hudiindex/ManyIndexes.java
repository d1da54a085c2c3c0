package hudiindex;

import java.io.IOException;
import java.util.stream.IntStream;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.ScorerSupplier;
import org.apache.lucene.search.Weight;

/** Queries many open indexes at once: a call from Python takes longer than querying one index. */
public final class ManyIndexes {
  private ManyIndexes() {}

  /** From this number of indexes on, the work is distributed to the JVM's threads. */
  private static final int MANY = 64;

  /** A segment is not searched if more rows, and more than one in {@link #SHARE}, may match. */
  private static final int MOST_ROWS = 1024;

  private static final int SHARE = 8;

  /**
   * Determines which of the indexes may have a matching row.
   *
   * @param address address of one byte per index, which is set to 0 if the index has no such row,
   *     or to 1 if it has one, if this check costs more than the row look-up, or if the index is
   *     damaged, which the row look-up reports
   */
  public static void mayMatch(IndexSearcher[] searchers, Query query, long address) {
    byte[] answers = new byte[searchers.length];
    IntStream every = IntStream.range(0, searchers.length);
    (searchers.length < MANY ? every : every.parallel())
        .forEach(i -> answers[i] = (byte) (mayMatch(searchers[i], query) ? 1 : 0));
    NativeMemory.write(answers, answers.length, address);
  }

  private static boolean mayMatch(IndexSearcher searcher, Query query) {
    try {
      Weight weight =
          searcher.createWeight(searcher.rewrite(query), ScoreMode.COMPLETE_NO_SCORES, 1f);
      for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
        ScorerSupplier supplier = weight.scorerSupplier(leaf);
        if (supplier == null) {
          continue;
        }
        if (supplier.cost() > Math.max(MOST_ROWS, leaf.reader().maxDoc() / SHARE)) {
          return true;
        }
        DocIdSetIterator rows = supplier.get(Long.MAX_VALUE).iterator();
        if (rows.nextDoc() != DocIdSetIterator.NO_MORE_DOCS) {
          return true;
        }
      }
      return false;
    } catch (IOException | RuntimeException | InternalError e) {
      return true;
    }
  }
}
