package hudiindex;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.CollectionStatistics;
import org.apache.lucene.search.Collector;
import org.apache.lucene.search.FilterLeafCollector;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.LeafCollector;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.TermStatistics;
import org.apache.lucene.search.TopScoreDocCollector;
import org.apache.lucene.search.similarities.BM25Similarity;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.FixedBitSet;

/**
 * The best rows by BM25 with Lucene's default parameters (k1 1.2, b 0.75) for a field in several
 * indexes: their statistics are summed first, so that scores are comparable.
 */
public final class RankedSearch {
  private static final int OF_FIELD = 3;

  private RankedSearch() {}

  /**
   * The statistics that scores depend on: the number of rows that have a word at all, the number of
   * their words, and the sum of their distinct words; then, for each word, the number of rows that
   * have it, and how often it occurs in them.
   *
   * @param words from {@link TextQueries#words}
   */
  public static long[] statistics(IndexSearcher searcher, String field, String[] words)
      throws IOException {
    IndexReader reader = searcher.getIndexReader();
    long[] found = new long[OF_FIELD + 2 * words.length];
    found[0] = reader.getDocCount(field);
    found[1] = reader.getSumTotalTermFreq(field);
    found[2] = reader.getSumDocFreq(field);
    for (int i = 0; i < words.length; i++) {
      Term term = new Term(field, words[i]);
      found[OF_FIELD + 2 * i] = reader.docFreq(term);
      found[OF_FIELD + 2 * i + 1] = reader.totalTermFreq(term);
    }
    return found;
  }

  /**
   * Writes the best rows, in order of score; of rows with the same score, the first ones first.
   *
   * @param query from {@link TextQueries#all} or {@link TextQueries#any}, for the words
   * @param statistics the sums over all indexes
   * @param allowedAddr address of the ascending 32-bit ids of the only rows allowed; 0: all rows
   * @param rowsAddr address of a buffer of k 32-bit integers, for row ids
   * @param scoresAddr address of a buffer of k 32-bit integers, for the bits of the scores
   * @return their number, at most k
   */
  public static int best(
      IndexSearcher searcher,
      Query query,
      String field,
      String[] words,
      long[] statistics,
      long allowedAddr,
      int allowedCount,
      int k,
      long rowsAddr,
      long scoresAddr)
      throws IOException {
    IndexReader reader = searcher.getIndexReader();
    IndexSearcher global = new Global(reader, field, words, statistics);
    TopScoreDocCollector best = TopScoreDocCollector.create(k, 0);
    FixedBitSet allowed = allowedAddr == 0 ? null : bits(reader, allowedAddr, allowedCount);
    Effort effort = new Effort();
    global.setTimeout(effort::isOver);
    global.search(query, allowed == null ? best : new Among(best, allowed));
    effort.take(0);
    ScoreDoc[] found = best.topDocs().scoreDocs;
    int[] rows = new int[found.length];
    int[] scores = new int[found.length];
    for (int i = 0; i < found.length; i++) {
      rows[i] = found[i].doc;
      scores[i] = Float.floatToRawIntBits(found[i].score);
    }
    NativeMemory.write(rows, rows.length, rowsAddr);
    NativeMemory.write(scores, scores.length, scoresAddr);
    return rows.length;
  }

  private static FixedBitSet bits(IndexReader reader, long address, int count) {
    FixedBitSet bits = new FixedBitSet(Math.max(1, reader.maxDoc()));
    for (int i = 0; i < count; i++) {
      bits.set(NativeMemory.getInt(address + 4L * i));
    }
    return bits;
  }

  /** Passes on only the allowed rows. */
  private static final class Among implements Collector {
    private final Collector collector;
    private final FixedBitSet allowed;

    Among(Collector collector, FixedBitSet allowed) {
      this.collector = collector;
      this.allowed = allowed;
    }

    @Override
    public LeafCollector getLeafCollector(LeafReaderContext leaf) throws IOException {
      return new FilterLeafCollector(collector.getLeafCollector(leaf)) {
        @Override
        public void collect(int doc) throws IOException {
          if (allowed.get(leaf.docBase + doc)) {
            super.collect(doc);
          }
        }
      };
    }

    @Override
    public ScoreMode scoreMode() {
      return collector.scoreMode();
    }
  }

  /** Scores with the statistics of all indexes. */
  private static final class Global extends IndexSearcher {
    private final String field;
    private final long[] statistics;
    private final Map<BytesRef, Integer> places = new HashMap<>();

    Global(IndexReader reader, String field, String[] words, long[] statistics) {
      super(reader);
      this.field = field;
      this.statistics = statistics;
      for (int i = 0; i < words.length; i++) {
        places.put(new BytesRef(words[i]), OF_FIELD + 2 * i);
      }
      setQueryCache(null);
      setSimilarity(new BM25Similarity());
    }

    @Override
    public CollectionStatistics collectionStatistics(String asked) throws IOException {
      if (!asked.equals(field)) {
        return super.collectionStatistics(asked);
      }
      long rows = statistics[0];
      return rows == 0
          ? null
          : new CollectionStatistics(field, rows, rows, statistics[1], statistics[2]);
    }

    @Override
    public TermStatistics termStatistics(Term term, int docFreq, long totalTermFreq) {
      int at = places.get(term.bytes());
      return new TermStatistics(term.bytes(), statistics[at], statistics[at + 1]);
    }
  }
}
