package hudiindex;

import java.io.IOException;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.PointValues;
import org.apache.lucene.search.ConstantScoreScorer;
import org.apache.lucene.search.ConstantScoreWeight;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.PointRangeQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.QueryVisitor;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.Scorer;
import org.apache.lucene.search.ScorerSupplier;
import org.apache.lucene.search.Weight;
import org.apache.lucene.util.BitSetIterator;
import org.apache.lucene.util.FixedBitSet;
import org.apache.lucene.util.IntsRef;

/**
 * A range of one-dimensional points as one clause of several; the rows of the others are looked up
 * in it. Lucene sorts the rows of a range, unless there are very many, and searches among them; one
 * bit per row of the segment needs neither.
 */
public final class PointBits extends Query {
  /** For fewer rows than the segment's divided by this, the bits cost more than they save. */
  private static final int FEW = 1024;

  private final PointRangeQuery range;

  public PointBits(PointRangeQuery range) {
    this.range = range;
  }

  PointRangeQuery range() {
    return range;
  }

  @Override
  public Weight createWeight(IndexSearcher searcher, ScoreMode scoreMode, float boost)
      throws IOException {
    Weight sorted = searcher.rewrite(range).createWeight(searcher, scoreMode, boost);
    return new ConstantScoreWeight(this, boost) {
      @Override
      public Scorer scorer(LeafReaderContext leaf) throws IOException {
        ScorerSupplier supplier = scorerSupplier(leaf);
        return supplier == null ? null : supplier.get(Long.MAX_VALUE);
      }

      @Override
      public ScorerSupplier scorerSupplier(LeafReaderContext leaf) throws IOException {
        ScorerSupplier supplier = sorted.scorerSupplier(leaf);
        int rows = leaf.reader().maxDoc();
        if (supplier == null || supplier.cost() < rows / FEW) {
          return supplier;
        }
        Weight weight = this;
        return new ScorerSupplier() {
          @Override
          public Scorer get(long leadCost) throws IOException {
            DocIdSetIterator found = bits(leaf.reader().getPointValues(range.getField()), rows);
            return new ConstantScoreScorer(weight, score(), scoreMode, found);
          }

          @Override
          public long cost() {
            return supplier.cost();
          }
        };
      }

      @Override
      public boolean isCacheable(LeafReaderContext leaf) {
        return false;
      }
    };
  }

  private DocIdSetIterator bits(PointValues values, int rows) throws IOException {
    Bits bits = new Bits(rows, range.getLowerPoint(), range.getUpperPoint());
    values.intersect(bits);
    return new BitSetIterator(bits.found, bits.count);
  }

  @Override
  public void visit(QueryVisitor visitor) {
    range.visit(visitor);
  }

  @Override
  public String toString(String inField) {
    return range.toString(inField);
  }

  @Override
  public boolean equals(Object other) {
    return sameClassAs(other) && range.equals(((PointBits) other).range);
  }

  @Override
  public int hashCode() {
    return 31 * classHash() + range.hashCode();
  }

  private static final class Bits extends RangeVisitor {
    final FixedBitSet found;
    long count;

    Bits(int rows, byte[] low, byte[] high) {
      super(low, high);
      found = new FixedBitSet(rows);
    }

    @Override
    public void visit(int doc) {
      found.set(doc);
      count++;
    }

    @Override
    public void visit(IntsRef docs) {
      for (int i = docs.offset; i < docs.offset + docs.length; i++) {
        found.set(docs.ints[i]);
      }
      count += docs.length;
    }
  }
}
