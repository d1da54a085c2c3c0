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

/** Asks many open indexes at once, since a call from Python takes longer than asking one. */
public final class ManyIndexes {
  private ManyIndexes() {}

  /** From so many indexes on, the work is shared out to the JVM's threads. */
  private static final int MANY = 64;

  /** A segment with more rows that may match, or with this share of them, is not looked into. */
  private static final int MOST_ROWS = 1024;

  private static final int SHARE = 8;

  /**
   * Which of the indexes may have a row that matches.
   *
   * @param address where a byte for each index begins; it becomes 0 if the index has no such row, 1
   *     if it has, if finding out costs more than looking the rows up, or if the index is damaged,
   *     which looking them up reports
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
