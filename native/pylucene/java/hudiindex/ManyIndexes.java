package hudiindex;

import java.io.IOException;
import java.util.Arrays;
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
  /** From this number of indexes on, the work is distributed to the JVM's threads. */
  private static final int MANY = 64;

  /** A segment is not searched if more rows, and more than one in {@link #SHARE}, may match. */
  private static final int MOST_ROWS = 1024;

  private static final int SHARE = 8;

  private static final int[] NONE = {};

  private final IndexSearcher[] searchers;

  /** Indexes that may be queried several times: to hand them over takes longer than a query. */
  public ManyIndexes(IndexSearcher[] searchers) {
    this.searchers = searchers;
  }

  /**
   * Finds the indexes in which no row matches.
   *
   * @param among address of the positions of the indexes to query, one int each
   * @param count the number of these indexes
   * @param answers address of one byte per position, which is set to 1 if no row of the index
   *     matches; to 0 if a row matches, if finding that out takes long, or if the index is damaged
   */
  public void withoutRows(Query query, long among, int count, long answers) {
    int[] positions = new int[count];
    NativeMemory.read(among, positions, count);
    byte[] isEmpty = new byte[count];
    inParallel(count).forEach(i -> isEmpty[i] = hasNone(searchers[positions[i]], query));
    NativeMemory.write(isEmpty, count, answers);
  }

  private static IntStream inParallel(int count) {
    IntStream every = IntStream.range(0, count);
    return count < MANY ? every : every.parallel();
  }

  private static byte hasNone(IndexSearcher searcher, Query query) {
    int[] rows = fewRows(searcher, query, 0);
    return (byte) (rows != null && rows.length == 0 ? 1 : 0);
  }

  /**
   * Finds the matching rows of each index that has few of them.
   *
   * @param most the most rows of an index that are returned
   * @param counts address of one int per index, which is set to the number of its matching rows, or
   *     to -1 if it has more than {@code most}, if finding them takes long, or if the index is
   *     damaged, which a look-up in it alone reports
   * @param rows address of {@code most} ints per index; all row ids are written there one after the
   *     other, in the order of the indexes
   */
  public void fewRows(Query query, int most, long counts, long rows) {
    int[][] found = new int[searchers.length][];
    inParallel(found.length).forEach(i -> found[i] = fewRows(searchers[i], query, most));
    int[] sizes = new int[found.length];
    long end = rows;
    for (int i = 0; i < found.length; i++) {
      if (found[i] == null) {
        sizes[i] = -1;
        continue;
      }
      sizes[i] = found[i].length;
      NativeMemory.write(found[i], sizes[i], end);
      end += 4L * sizes[i];
    }
    NativeMemory.write(sizes, sizes.length, counts);
  }

  /** The matching rows of an index; null if they are not found here. */
  private static int[] fewRows(IndexSearcher searcher, Query query, int most) {
    int[] rows = NONE;
    int count = 0;
    try {
      Weight weight =
          searcher.createWeight(searcher.rewrite(query), ScoreMode.COMPLETE_NO_SCORES, 1f);
      for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
        ScorerSupplier supplier = weight.scorerSupplier(leaf);
        if (supplier == null) {
          continue;
        }
        if (supplier.cost() > Math.max(MOST_ROWS, leaf.reader().maxDoc() / SHARE)) {
          return null;
        }
        DocIdSetIterator matching = supplier.get(Long.MAX_VALUE).iterator();
        int row;
        while ((row = matching.nextDoc()) != DocIdSetIterator.NO_MORE_DOCS) {
          if (count == most) {
            return null;
          }
          if (count == rows.length) {
            rows = Arrays.copyOf(rows, Math.min(most, Math.max(8, 2 * count)));
          }
          rows[count++] = leaf.docBase + row;
        }
      }
      return count == rows.length ? rows : Arrays.copyOf(rows, count);
    } catch (IOException | RuntimeException | InternalError e) {
      return null;
    }
  }
}
