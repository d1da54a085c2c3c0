package hudiindex;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.search.BulkScorer;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.LeafCollector;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.Scorable;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.ScorerSupplier;
import org.apache.lucene.search.Weight;

/** The row ids (segment base + doc id) that match a query: all of them, unscored, ascending. */
public final class RowIds {
  private RowIds() {}

  /** Number of matching rows. */
  public static int count(IndexSearcher searcher, Query query) throws IOException {
    return searcher.count(query);
  }

  /**
   * Writes the matching row ids as ascending 32-bit integers, in the machine's byte order.
   *
   * @param address where a buffer of {@code capacity} ints begins
   * @return their number n, or -1-n if the buffer is too small (it then holds the first {@code
   *     capacity} of them)
   */
  public static int into(IndexSearcher searcher, Query query, long address, int capacity)
      throws IOException {
    List<LeafReaderContext> leaves = searcher.getIndexReader().leaves();
    List<BulkScorer> scorers = scorers(weight(searcher, query), leaves, query);
    Output output = new Output(address, capacity);
    for (int i = 0; i < leaves.size(); i++) {
      BulkScorer scorer = scorers.get(i);
      if (scorer != null) {
        LeafReaderContext leaf = leaves.get(i);
        output.base = leaf.docBase;
        scorer.score(output, leaf.reader().getLiveDocs(), 0, DocIdSetIterator.NO_MORE_DOCS);
      }
    }
    output.flush();
    return output.found <= capacity ? output.found : -1 - output.found;
  }

  /**
   * What finds the rows of each segment. A {@link LikeQuery} does nearly all its work when that is
   * made: on all segments at once.
   */
  private static List<BulkScorer> scorers(
      Weight weight, List<LeafReaderContext> leaves, Query query) throws IOException {
    Stream<LeafReaderContext> each = leaves.stream();
    try {
      return (query instanceof LikeQuery ? each.parallel() : each)
          .map(leaf -> scorer(weight, leaf))
          .collect(Collectors.toList());
    } catch (UncheckedIOException e) {
      throw e.getCause();
    }
  }

  private static BulkScorer scorer(Weight weight, LeafReaderContext leaf) {
    try {
      return weight.bulkScorer(leaf);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * About how many rows match, at most for most queries: the sum of the segments' cost estimates.
   * Reads term dictionaries and point trees but no postings.
   */
  public static long cost(IndexSearcher searcher, Query query) throws IOException {
    Weight weight = weight(searcher, query);
    long cost = 0;
    for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
      ScorerSupplier supplier = weight.scorerSupplier(leaf);
      if (supplier != null) {
        cost += supplier.cost();
      }
    }
    return cost;
  }

  private static Weight weight(IndexSearcher searcher, Query query) throws IOException {
    return searcher.createWeight(searcher.rewrite(query), ScoreMode.COMPLETE_NO_SCORES, 1f);
  }

  /** Collects in pieces, so that the foreign buffer is written in bulk. */
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
