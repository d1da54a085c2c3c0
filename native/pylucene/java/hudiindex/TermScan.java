package hudiindex;

import java.io.IOException;
import java.util.Arrays;
import java.util.Objects;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Term;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.ConstantScoreScorer;
import org.apache.lucene.search.ConstantScoreWeight;
import org.apache.lucene.search.DocIdSet;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.QueryVisitor;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.Scorer;
import org.apache.lucene.search.ScorerSupplier;
import org.apache.lucene.search.Weight;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.DocIdSetBuilder;

/**
 * Rows with a term that lies in a range and matches a LIKE pattern: every term in the range is
 * examined. This is faster than an automaton, whose size some patterns blow up.
 */
public final class TermScan extends Query {
  private static final int TERMS_AT_ONCE = 256;

  /** Steps of a term: to find its one row takes 60 to 100 ns, a row of many takes 10. */
  static final int A_TERM = 8;

  private static final int PLACE_BYTES = 6; // a double represents them exactly

  final String field;
  final BytesRef low;
  final boolean lowIncluded;
  final BytesRef high;
  private final boolean highIncluded;
  private final String[] parts;
  final LikePattern pattern;
  private final int longBytes;

  /** All terms in a range; null means no bound. */
  public TermScan(
      String field, BytesRef low, boolean lowIncluded, BytesRef high, boolean highIncluded) {
    this(field, low, lowIncluded, high, highIncluded, null, Integer.MAX_VALUE);
  }

  /**
   * All terms that match a pattern.
   *
   * @param parts the pattern's parts in order: {@code %}, {@code _}, or {@code =} and a text
   * @param longBytes terms of this many bytes or more always match
   */
  public TermScan(String field, String[] parts, int longBytes) {
    this(field, null, false, null, false, parts.clone(), longBytes);
  }

  private TermScan(
      String field,
      BytesRef low,
      boolean lowIncluded,
      BytesRef high,
      boolean highIncluded,
      String[] parts,
      int longBytes) {
    this.field = field;
    this.parts = parts;
    this.longBytes = longBytes;
    pattern = parts == null ? null : new LikePattern(parts);
    boolean begins = pattern != null && pattern.prefix.length > 0 && longBytes == Integer.MAX_VALUE;
    this.low = begins ? new BytesRef(pattern.prefix) : low;
    this.lowIncluded = begins || lowIncluded;
    this.high = begins ? abovePrefix(pattern.prefix) : high;
    this.highIncluded = highIncluded;
  }

  /** All terms with the prefix. */
  static TermScan of(Term prefix) {
    BytesRef begin = prefix.bytes();
    byte[] bytes = Arrays.copyOfRange(begin.bytes, begin.offset, begin.offset + begin.length);
    return new TermScan(prefix.field(), new BytesRef(bytes), true, abovePrefix(bytes), false);
  }

  /** The least term above all terms with the prefix; null if there is none. */
  private static BytesRef abovePrefix(byte[] prefix) {
    for (int i = prefix.length - 1; i >= 0; i--) {
      if (prefix[i] != -1) {
        byte[] above = Arrays.copyOf(prefix, i + 1);
        above[i]++;
        return new BytesRef(above);
      }
    }
    return null;
  }

  /**
   * The matching rows of a segment.
   *
   * @return null if that takes too many steps
   */
  DocIdSet rows(LeafReader segment, Effort effort) throws IOException {
    Terms terms = segment.terms(field);
    if (terms == null) {
      return DocIdSet.EMPTY;
    }
    DocIdSetBuilder rows = new DocIdSetBuilder(segment.maxDoc(), terms);
    TermsEnum each = terms.iterator();
    PostingsEnum postings = null;
    int steps = 0;
    for (BytesRef term = first(each); term != null && !isAbove(term); term = each.next()) {
      steps += A_TERM;
      if (fits(term)) {
        postings = each.postings(postings, PostingsEnum.NONE);
        rows.add(postings);
        steps += each.docFreq() - 1;
      }
      if (steps >= A_TERM * TERMS_AT_ONCE) {
        if (!effort.take(steps)) {
          return null;
        }
        steps = 0;
      }
    }
    return effort.take(steps) ? rows.build() : null;
  }

  /**
   * Approximate number of terms and rows to visit. A small number is counted; a large one is
   * estimated between the number for evenly distributed terms, which texts are not, and all.
   */
  long cost(LeafReader segment) throws IOException {
    Terms terms = segment.terms(field);
    BytesRef[] ends = terms == null ? null : ends(terms);
    if (ends == null) {
      return 0;
    }
    long few = few(terms.iterator());
    if (few < TERMS_AT_ONCE) {
      return few;
    }
    long all = pattern == null ? Math.max(terms.size(), terms.getSumDocFreq()) : terms.size();
    BytesRef least = terms.getMin();
    BytesRef greatest = terms.getMax();
    int shared = shared(least, greatest);
    double width = place(greatest, shared) - place(least, shared);
    double part = width <= 0 ? 1 : (place(ends[1], shared) - place(ends[0], shared)) / width;
    return Math.max(few, Math.round(all * Math.sqrt(Math.min(1, Math.max(0, part)))));
  }

  /** Approximate number of steps of {@link #rows}. */
  long steps(LeafReader segment) throws IOException {
    Terms terms = segment.terms(field);
    if (terms == null) {
      return 0;
    }
    // Where each term has one row, or each is examined, all that is visited are terms.
    double ofTerms =
        pattern == null ? (double) terms.size() / Math.max(1, terms.getSumDocFreq()) : 1;
    return Math.round(cost(segment) * (1 + (A_TERM - 1) * Math.min(1, ofTerms)));
  }

  /** Number of terms and rows to visit, counted as long as these are few. */
  private long few(TermsEnum each) throws IOException {
    long steps = 0;
    for (BytesRef term = first(each); term != null && !isAbove(term); term = each.next()) {
      steps += fits(term) ? each.docFreq() : 1;
      if (steps >= TERMS_AT_ONCE) {
        break;
      }
    }
    return steps;
  }

  /** The least and the greatest term possible; null if there is none. */
  private BytesRef[] ends(Terms terms) throws IOException {
    BytesRef from = terms.getMin();
    BytesRef to = terms.getMax();
    if (from == null) {
      return null;
    }
    from = low == null || low.compareTo(from) < 0 ? from : low;
    to = high == null || high.compareTo(to) > 0 ? to : high;
    return from.compareTo(to) > 0 ? null : new BytesRef[] {from, to};
  }

  /** Length of the common prefix, which says nothing about what lies between the two. */
  private static int shared(BytesRef one, BytesRef other) {
    int shared = 0;
    while (shared < one.length
        && shared < other.length
        && one.bytes[one.offset + shared] == other.bytes[other.offset + shared]) {
      shared++;
    }
    return shared;
  }

  /** The position of a term among others with the same first {@code from} bytes. */
  private static double place(BytesRef term, int from) {
    double place = 0;
    for (int i = 0; i < PLACE_BYTES; i++) {
      int at = from + i;
      place = place * 256 + (at < term.length ? term.bytes[term.offset + at] & 0xFF : 0);
    }
    return place;
  }

  static BytesRef seek(TermsEnum terms, BytesRef to) throws IOException {
    return terms.seekCeil(to) == TermsEnum.SeekStatus.END ? null : terms.term();
  }

  BytesRef first(TermsEnum terms) throws IOException {
    if (low == null) {
      return terms.next();
    }
    BytesRef term = seek(terms, low);
    return !lowIncluded && term != null && term.equals(low) ? terms.next() : term;
  }

  boolean isAbove(BytesRef term) {
    if (high == null) {
      return false;
    }
    int order = term.compareTo(high);
    return order > 0 || (order == 0 && !highIncluded);
  }

  boolean fits(BytesRef term) {
    return pattern == null
        || term.length >= longBytes
        || pattern.matches(term.bytes, term.offset, term.offset + term.length);
  }

  @Override
  public Weight createWeight(IndexSearcher searcher, ScoreMode scoreMode, float boost) {
    return new ConstantScoreWeight(this, boost) {
      @Override
      public Scorer scorer(LeafReaderContext leaf) throws IOException {
        ScorerSupplier supplier = scorerSupplier(leaf);
        return supplier == null ? null : supplier.get(Long.MAX_VALUE);
      }

      @Override
      public ScorerSupplier scorerSupplier(LeafReaderContext leaf) throws IOException {
        Weight weight = this;
        long cost = TermScan.this.cost(leaf.reader());
        return new ScorerSupplier() {
          @Override
          public Scorer get(long leadCost) throws IOException {
            DocIdSet rows = rows(leaf.reader(), new Effort());
            return new ConstantScoreScorer(weight, score(), scoreMode, rows.iterator());
          }

          @Override
          public long cost() {
            return cost;
          }
        };
      }

      @Override
      public boolean isCacheable(LeafReaderContext leaf) {
        return false;
      }
    };
  }

  @Override
  public void visit(QueryVisitor visitor) {
    if (visitor.acceptField(field)) {
      visitor.visitLeaf(this);
    }
  }

  @Override
  public String toString(String inField) {
    return field + " like " + Arrays.toString(parts) + " from " + low + " to " + high;
  }

  @Override
  public boolean equals(Object other) {
    if (!sameClassAs(other)) {
      return false;
    }
    TermScan that = (TermScan) other;
    return field.equals(that.field)
        && Objects.equals(low, that.low)
        && lowIncluded == that.lowIncluded
        && Objects.equals(high, that.high)
        && highIncluded == that.highIncluded
        && longBytes == that.longBytes
        && Arrays.equals(parts, that.parts);
  }

  @Override
  public int hashCode() {
    return 31 * Objects.hash(classHash(), field, low, lowIncluded, high, highIncluded, longBytes)
        + Arrays.hashCode(parts);
  }
}
