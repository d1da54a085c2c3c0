package hudiindex;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntConsumer;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.search.BulkScorer;
import org.apache.lucene.search.DocIdSet;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.LeafCollector;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.Scorable;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.Scorer;
import org.apache.lucene.search.ScorerSupplier;
import org.apache.lucene.search.TermInSetQuery;
import org.apache.lucene.search.TwoPhaseIterator;
import org.apache.lucene.search.Weight;

/** The ids (segment base + doc id) of the rows that match a query: all, unscored, ascending. */
public final class RowIds {
  /** Rows of a segment that are visited before it is asked whether they are still wanted. */
  private static final int ROWS_AT_ONCE = 1 << 16;

  /** Listed terms of which each is looked up to find out how many rows it has. */
  private static final int FEW_TERMS = 256;

  private RowIds() {}

  /** Returned by {@link #into} if collecting the rows would take too many steps. */
  public static final int TOO_MANY_STEPS = Integer.MIN_VALUE;

  /**
   * Writes the matching row ids as ascending 32-bit integers, in the machine's byte order.
   *
   * @param address address of a buffer of {@code capacity} ints
   * @param most approximate maximum number of steps, that is, of terms and rows visited
   * @return their number n; -1-n if the buffer is too small (it then contains the first {@code
   *     capacity} of them); or {@link #TOO_MANY_STEPS}
   */
  public static int into(IndexSearcher searcher, Query query, long address, int capacity, long most)
      throws IOException {
    Output output = new Output(address, capacity);
    boolean whole =
        query instanceof TermScan
            ? scan(searcher, (TermScan) query, output, most)
            : search(searcher, query, output, most);
    output.flush();
    if (!whole) {
      return TOO_MANY_STEPS;
    }
    return output.found <= capacity ? output.found : -1 - output.found;
  }

  private static boolean search(IndexSearcher searcher, Query query, Output output, long most)
      throws IOException {
    Weight weight = weight(searcher, query);
    if (most < searcher.getIndexReader().maxDoc() && steps(searcher, query, weight) > most) {
      return false;
    }
    Effort effort = new Effort();
    for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
      BulkScorer scorer = weight.bulkScorer(leaf);
      output.base = leaf.docBase;
      int row = scorer == null ? DocIdSetIterator.NO_MORE_DOCS : 0;
      while (row != DocIdSetIterator.NO_MORE_DOCS) {
        effort.take(0);
        int end =
            leaf.reader().maxDoc() - row > ROWS_AT_ONCE ? row + ROWS_AT_ONCE : Integer.MAX_VALUE;
        row = scorer.score(output, leaf.reader().getLiveDocs(), row, end);
      }
    }
    return true;
  }

  /** Scans all segments at once: no segment waits for another. */
  private static boolean scan(IndexSearcher searcher, TermScan scan, Output output, long most)
      throws IOException {
    List<LeafReaderContext> leaves = searcher.getIndexReader().leaves();
    long each = TermScan.A_TERM * (long) searcher.getIndexReader().maxDoc();
    if (most < each && steps(searcher, scan) > most) {
      return false;
    }
    Effort effort = new Effort(most);
    DocIdSet[] found = new DocIdSet[leaves.size()];
    try {
      Items.each(found.length, effort, i -> found[i] = rows(scan, leaves.get(i), effort));
    } catch (UncheckedIOException e) {
      throw e.getCause();
    }
    if (Arrays.asList(found).contains(null)) {
      return false;
    }
    for (int i = 0; i < found.length; i++) {
      output.base = leaves.get(i).docBase;
      DocIdSetIterator rows = found[i].iterator();
      while (rows.nextDoc() != DocIdSetIterator.NO_MORE_DOCS) {
        output.collect(rows.docID());
      }
    }
    return true;
  }

  private static DocIdSet rows(TermScan scan, LeafReaderContext leaf, Effort effort) {
    try {
      return scan.rows(leaf.reader(), effort);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Writes those of the given rows that match. Each row is looked up, which for few rows takes far
   * less time than visiting all matches. Not for a {@link TermScan}, which visits all matches.
   *
   * @param rows address of their ids, ascending 32-bit integers in the machine's byte order
   * @param address address of a buffer of {@code count} ints; may be {@code rows}
   * @return the number of matching rows
   */
  public static int among(IndexSearcher searcher, Query query, long rows, int count, long address)
      throws IOException {
    int[] asked = new int[count];
    NativeMemory.read(rows, asked, count);
    Output output = new Output(address, count);
    among(searcher, query, asked, output::collect);
    output.flush();
    return output.found;
  }

  /** The same for rows in an array; the matching ones are passed on, ascending. */
  static void among(IndexSearcher searcher, Query query, int[] asked, IntConsumer matching)
      throws IOException {
    Weight weight = weight(searcher, query);
    int at = 0;
    for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
      int end = leaf.docBase + leaf.reader().maxDoc();
      Scorer scorer = at < asked.length && asked[at] < end ? weight.scorer(leaf) : null;
      if (scorer != null) {
        TwoPhaseIterator check = scorer.twoPhaseIterator();
        DocIdSetIterator found = check == null ? scorer.iterator() : check.approximation();
        for (; at < asked.length && asked[at] < end; at++) {
          int doc = asked[at] - leaf.docBase;
          if (found.docID() < doc) {
            found.advance(doc);
          }
          if (found.docID() == doc && (check == null || check.matches())) {
            matching.accept(asked[at]);
          }
        }
      }
      while (at < asked.length && asked[at] < end) {
        at++;
      }
    }
  }

  /**
   * Approximate number of matching rows, for most queries an upper bound: the sum of the segments'
   * cost estimates. Reads term dictionaries and point trees but no postings.
   */
  public static long cost(IndexSearcher searcher, Query query) throws IOException {
    return cost(searcher, weight(searcher, query));
  }

  /** Approximate number of steps to find the matching rows: those that {@link Effort} counts. */
  public static long steps(IndexSearcher searcher, Query query) throws IOException {
    if (!(query instanceof TermScan)) {
      return steps(searcher, query, weight(searcher, query));
    }
    long steps = 0;
    for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
      steps += ((TermScan) query).steps(leaf.reader());
    }
    return steps;
  }

  /** Of few listed terms, their own rows: Lucene's estimate is that they may have all rows. */
  private static long steps(IndexSearcher searcher, Query query, Weight weight) throws IOException {
    long cost = cost(searcher, weight);
    if (query instanceof TermInSetQuery && ((TermInSetQuery) query).getTermsCount() <= FEW_TERMS) {
      int segments = searcher.getIndexReader().leaves().size();
      int each = RowBounds.TERMS_A_LOOKUP * FEW_TERMS * segments;
      return Math.min(cost, (int) RowBounds.of(searcher, query, each, false));
    }
    return cost;
  }

  private static long cost(IndexSearcher searcher, Weight weight) throws IOException {
    long cost = 0;
    for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
      ScorerSupplier supplier = weight.scorerSupplier(leaf);
      if (supplier != null) {
        cost += supplier.cost();
      }
    }
    return cost;
  }

  static Weight weight(IndexSearcher searcher, Query query) throws IOException {
    return searcher.createWeight(searcher.rewrite(query), ScoreMode.COMPLETE_NO_SCORES, 1f);
  }

  /** Collects row ids in pieces, so that the foreign buffer is written in bulk. */
  private static final class Output implements LeafCollector {
    private final long address;
    private final int capacity;
    private final int[] piece = new int[4096];
    private int inPiece;
    private int written;
    int base;
    int found;

    Output(long address, int capacity) {
      this.address = address;
      this.capacity = capacity;
    }

    @Override
    public void setScorer(Scorable scorer) {}

    @Override
    public void collect(int doc) {
      piece[inPiece++] = base + doc;
      if (inPiece == piece.length) {
        flush();
      }
    }

    void flush() {
      found += inPiece;
      int count = Math.min(inPiece, capacity - written);
      NativeMemory.write(piece, count, address + 4L * written);
      written += count;
      inPiece = 0;
    }
  }
}
