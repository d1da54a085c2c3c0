package hudiindex;

import java.io.IOException;
import java.util.Arrays;
import java.util.function.IntConsumer;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScorerSupplier;
import org.apache.lucene.search.Weight;
import org.apache.lucene.util.BytesRef;

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
    inParallel(count, i -> isEmpty[i] = hasNone(searchers[positions[i]], query));
    NativeMemory.write(isEmpty, count, answers);
  }

  private static void inParallel(int count, IntConsumer work) {
    inParallel(count, work, count >= MANY);
  }

  private static void inParallel(int count, IntConsumer work, boolean isLong) {
    Effort effort = new Effort();
    IntConsumer wanted =
        i -> {
          effort.take(0);
          work.accept(i);
        };
    if (isLong) {
      Items.each(count, effort, wanted);
      return;
    }
    for (int i = 0; i < count; i++) {
      wanted.accept(i);
    }
  }

  /**
   * Counts the matching rows of some indexes: from the statistics of terms and points or, where
   * these do not tell, by visiting the rows, unless there are many.
   *
   * @param among address of the positions of the indexes to query, one int each
   * @param count the number of these indexes
   * @param mostTerms see {@link RowBounds#of}
   * @param answers address of one int per position, which is set to the number; to -1 if many rows
   *     would have to be visited, or if the index is damaged
   */
  public void counts(Query query, long among, int count, int mostTerms, long answers) {
    int[] positions = new int[count];
    NativeMemory.read(among, positions, count);
    int[] found = new int[count];
    inParallel(count, i -> found[i] = count(searchers[positions[i]], query, mostTerms));
    int[] others = IntStream.range(0, count).filter(i -> found[i] < 0).toArray();
    IntConsumer visit = i -> found[others[i]] = visited(searchers[positions[others[i]]], query);
    inParallel(others.length, visit, true);
    NativeMemory.write(found, count, answers);
  }

  private static int count(IndexSearcher searcher, Query query, int mostTerms) {
    try {
      long bounds = RowBounds.of(searcher, query, mostTerms, true);
      return bounds >>> 32 == (int) bounds ? (int) bounds : -1;
    } catch (IOException | RuntimeException | InternalError e) {
      return -1;
    }
  }

  private static int visited(IndexSearcher searcher, Query query) {
    int[] count = {0};
    IntPredicate counting =
        row -> {
          count[0]++;
          return true;
        };
    return visit(searcher, query, counting) ? count[0] : -1;
  }

  private static byte hasNone(IndexSearcher searcher, Query query) {
    int[] rows = fewRows(searcher, query, 0);
    return (byte) (rows != null && rows.length == 0 ? 1 : 0);
  }

  /**
   * Finds the matching rows of those of some indexes that have few of them.
   *
   * @param among address of the positions of the indexes to query, one int each
   * @param count the number of these indexes
   * @param most the most rows of an index
   * @return the rows; not those of an index with more, of which finding them takes long, or that is
   *     damaged, which a look-up in it alone reports
   */
  public RowsFound fewRows(Query query, long among, int count, int most) {
    int[] positions = new int[count];
    NativeMemory.read(among, positions, count);
    int[][] found = new int[count][];
    inParallel(count, i -> found[i] = fewRows(searchers[positions[i]], query, most));
    return new RowsFound(found);
  }

  /**
   * Finds those of some rows that match. Each is looked up; see {@link RowIds#among}.
   *
   * @param among address of the positions of the indexes to query, one int each
   * @param count the number of these indexes
   * @param starts address of one int more, where the rows of each index begin and the last one's
   *     end
   * @param rows address of the ids of these rows, ascending for each index
   * @return the matching rows; not those of an index that is damaged, which a look-up in it alone
   *     reports
   */
  public RowsFound among(Query query, long among, int count, long starts, long rows) {
    return rows(
        among,
        count,
        starts,
        rows,
        (searcher, some) -> {
          Rows matching = new Rows();
          RowIds.among(searcher, query, some, matching::add);
          return matching.toArray();
        });
  }

  /**
   * Finds the rows with any of some terms, in some indexes, of each other terms.
   *
   * @param terms the terms in order, one after the other
   * @param ends the end of each term
   * @param among address of the positions of the indexes to search, one int each
   * @param count the number of these indexes
   * @param starts address of one int more, where the numbers of each index's terms begin and the
   *     last one's end
   * @param numbers address of the numbers of terms, ascending for each index
   * @param most the most rows of an index
   * @return the rows; not those of an index with more, or that is damaged, which a look-up in it
   *     alone reports
   */
  public RowsFound rowsOfTerms(
      String field,
      byte[] terms,
      int[] ends,
      long among,
      int count,
      long starts,
      long numbers,
      int most) {
    BytesRef[] each = new BytesRef[ends.length];
    for (int i = 0; i < ends.length; i++) {
      int start = i == 0 ? 0 : ends[i - 1];
      each[i] = new BytesRef(terms, start, ends[i] - start);
    }
    return rows(
        among,
        count,
        starts,
        numbers,
        (searcher, of) -> {
          BytesRef[] own = new BytesRef[of.length];
          for (int i = 0; i < of.length; i++) {
            own[i] = each[of[i]];
          }
          return ListedValues.rowsOfTerms(searcher, field, own, most);
        });
  }

  /**
   * Finds the rows with any of some numbers, in some indexes, of each other numbers.
   *
   * @param points address of the numbers in order, one long each
   * @param size how many there are; all others are as for {@link #rowsOfTerms}
   */
  public RowsFound rowsOfPoints(
      String field,
      long points,
      int size,
      long among,
      int count,
      long starts,
      long numbers,
      int most) {
    long[] each = new long[size];
    for (int i = 0; i < size; i++) {
      each[i] = NativeMemory.getLong(points + 8L * i);
    }
    return rows(
        among,
        count,
        starts,
        numbers,
        (searcher, of) -> {
          long[] own = new long[of.length];
          for (int i = 0; i < of.length; i++) {
            own[i] = each[of[i]];
          }
          return ListedValues.rowsOfPoints(searcher, field, own, most);
        });
  }

  /** A search for some of the values, or among some of the rows, of one index. */
  private interface Search {
    int[] rows(IndexSearcher searcher, int[] numbers) throws IOException;
  }

  private RowsFound rows(long among, int count, long starts, long numbers, Search search) {
    int[] positions = new int[count];
    NativeMemory.read(among, positions, count);
    int[] begins = new int[count + 1];
    NativeMemory.read(starts, begins, count + 1);
    int[] every = new int[begins[count]];
    NativeMemory.read(numbers, every, every.length);
    int[][] found = new int[count][];
    inParallel(
        count,
        i -> {
          int[] own = Arrays.copyOfRange(every, begins[i], begins[i + 1]);
          try {
            found[i] = own.length == 0 ? NONE : search.rows(searchers[positions[i]], own);
          } catch (IOException | RuntimeException | InternalError e) {
            found[i] = null;
          }
        });
    return new RowsFound(found);
  }

  /** The matching rows of an index; null if they are not found here. */
  private static int[] fewRows(IndexSearcher searcher, Query query, int most) {
    Rows rows = new Rows();
    boolean all = visit(searcher, query, row -> rows.count < most && rows.add(row));
    return all ? rows.toArray() : null;
  }

  /**
   * Visits the matching rows of an index, ascending.
   *
   * @param rows returns whether to go on
   * @return whether all were visited; false if there may be many, or if the index is damaged
   */
  private static boolean visit(IndexSearcher searcher, Query query, IntPredicate rows) {
    try {
      Weight weight = RowIds.weight(searcher, query);
      for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
        ScorerSupplier supplier = weight.scorerSupplier(leaf);
        if (supplier == null) {
          continue;
        }
        if (supplier.cost() > Math.max(MOST_ROWS, leaf.reader().maxDoc() / SHARE)) {
          return false;
        }
        DocIdSetIterator matching = supplier.get(Long.MAX_VALUE).iterator();
        int row;
        while ((row = matching.nextDoc()) != DocIdSetIterator.NO_MORE_DOCS) {
          if (!rows.test(leaf.docBase + row)) {
            return false;
          }
        }
      }
      return true;
    } catch (IOException | RuntimeException | InternalError e) {
      return false;
    }
  }

  private static final class Rows {
    private int[] rows = NONE;
    int count;

    boolean add(int row) {
      if (count == rows.length) {
        rows = Arrays.copyOf(rows, Math.max(8, 2 * count));
      }
      rows[count++] = row;
      return true;
    }

    int[] toArray() {
      return count == rows.length ? rows : Arrays.copyOf(rows, count);
    }
  }
}
