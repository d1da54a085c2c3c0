package hudiindex;

import java.io.IOException;
import java.util.Arrays;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.PostingsEnum;
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
import org.apache.lucene.util.StringHelper;

/**
 * Rows with a term that fits a LIKE pattern, whatever the pattern: every term that begins as the
 * pattern does is looked at. That is quicker than an automaton, whose size the pattern can blow up.
 */
public final class LikeQuery extends Query {
  private final String field;
  private final String[] parts;
  private final LikePattern pattern;
  private final int longBytes;

  /**
   * @param parts the pattern's parts in order: {@code %}, {@code _}, or {@code =} and a text
   * @param longBytes terms of so many bytes and more fit whatever they are
   */
  public LikeQuery(String field, String[] parts, int longBytes) {
    this.field = field;
    this.parts = parts.clone();
    this.longBytes = longBytes;
    pattern = new LikePattern(parts);
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
        Terms terms = leaf.reader().terms(field);
        if (terms == null) {
          return null;
        }
        Weight weight = this;
        return new ScorerSupplier() {
          @Override
          public Scorer get(long leadCost) throws IOException {
            DocIdSet rows = rows(terms, leaf.reader().maxDoc());
            return new ConstantScoreScorer(weight, score(), scoreMode, rows.iterator());
          }

          @Override
          public long cost() {
            return leaf.reader().maxDoc(); // nothing is known before all terms are
          }
        };
      }

      @Override
      public boolean isCacheable(LeafReaderContext leaf) {
        return false;
      }
    };
  }

  private DocIdSet rows(Terms terms, int maxDoc) throws IOException {
    DocIdSetBuilder rows = new DocIdSetBuilder(maxDoc, terms);
    TermsEnum all = terms.iterator();
    BytesRef prefix = new BytesRef(pattern.prefix);
    PostingsEnum postings = null;
    BytesRef term = null;
    if (longBytes == Integer.MAX_VALUE && prefix.length > 0) {
      if (all.seekCeil(prefix) != TermsEnum.SeekStatus.END) {
        term = all.term();
      }
    } else {
      term = all.next();
      prefix = new BytesRef();
    }
    for (; term != null && StringHelper.startsWith(term, prefix); term = all.next()) {
      if (term.length >= longBytes
          || pattern.matches(term.bytes, term.offset, term.offset + term.length)) {
        postings = all.postings(postings, PostingsEnum.NONE);
        rows.add(postings);
      }
    }
    return rows.build();
  }

  @Override
  public void visit(QueryVisitor visitor) {
    if (visitor.acceptField(field)) {
      visitor.visitLeaf(this);
    }
  }

  @Override
  public String toString(String inField) {
    return field + " like " + Arrays.toString(parts);
  }

  @Override
  public boolean equals(Object other) {
    return sameClassAs(other)
        && field.equals(((LikeQuery) other).field)
        && longBytes == ((LikeQuery) other).longBytes
        && Arrays.equals(parts, ((LikeQuery) other).parts);
  }

  @Override
  public int hashCode() {
    return 31 * (31 * (31 * classHash() + field.hashCode()) + longBytes) + Arrays.hashCode(parts);
  }
}
