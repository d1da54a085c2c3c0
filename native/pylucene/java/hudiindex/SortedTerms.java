package hudiindex;

import java.io.IOException;
import org.apache.lucene.index.BaseTermsEnum;
import org.apache.lucene.index.ImpactsEnum;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.util.BytesRef;

/** A field's sorted terms in the form that Lucene's codec expects: read once, in order. */
final class SortedTerms extends Terms {
  private final Occurrences.Sorted sorted;
  private final boolean withPositions;
  private final int filledRows;

  SortedTerms(Occurrences.Sorted sorted, boolean withPositions, int filledRows) {
    this.sorted = sorted;
    this.withPositions = withPositions;
    this.filledRows = filledRows;
  }

  @Override
  public TermsEnum iterator() {
    return new InOrder();
  }

  @Override
  public long size() {
    return sorted.terms();
  }

  @Override
  public long getSumTotalTermFreq() {
    throw new UnsupportedOperationException(); // the codec counts them itself
  }

  @Override
  public long getSumDocFreq() {
    throw new UnsupportedOperationException();
  }

  @Override
  public int getDocCount() {
    return filledRows;
  }

  @Override
  public boolean hasFreqs() {
    return withPositions;
  }

  @Override
  public boolean hasOffsets() {
    return false;
  }

  @Override
  public boolean hasPositions() {
    return withPositions;
  }

  @Override
  public boolean hasPayloads() {
    return false;
  }

  private final class InOrder extends BaseTermsEnum {
    private final BytesRef term = new BytesRef();
    private final Rows rows = new Rows();
    private int rank = -1;

    @Override
    public BytesRef next() {
      if (++rank >= sorted.terms()) {
        return null;
      }
      sorted.term(rank, term);
      return term;
    }

    @Override
    public BytesRef term() {
      return term;
    }

    @Override
    public PostingsEnum postings(PostingsEnum reuse, int flags) {
      rows.reset(sorted.start(rank), sorted.end(rank));
      return rows;
    }

    @Override
    public SeekStatus seekCeil(BytesRef text) {
      throw new UnsupportedOperationException();
    }

    @Override
    public void seekExact(long ord) {
      throw new UnsupportedOperationException();
    }

    @Override
    public long ord() {
      throw new UnsupportedOperationException();
    }

    @Override
    public int docFreq() {
      throw new UnsupportedOperationException();
    }

    @Override
    public long totalTermFreq() {
      throw new UnsupportedOperationException();
    }

    @Override
    public ImpactsEnum impacts(int flags) throws IOException {
      throw new UnsupportedOperationException();
    }
  }

  /** The rows of one term. A row that has it several times appears once, with that frequency. */
  private final class Rows extends PostingsEnum {
    private int end;
    private int first;
    private int next;
    private int position;
    private int row;

    void reset(int start, int end) {
      this.end = end;
      next = start;
      row = -1;
    }

    @Override
    public int nextDoc() {
      if (next == end) {
        return row = NO_MORE_DOCS;
      }
      first = next;
      position = next;
      row = sorted.row(next++);
      while (next < end && sorted.row(next) == row) {
        next++;
      }
      return row;
    }

    @Override
    public int docID() {
      return row;
    }

    @Override
    public int freq() {
      return next - first;
    }

    @Override
    public int nextPosition() {
      return sorted.position(position++);
    }

    @Override
    public int startOffset() {
      return -1;
    }

    @Override
    public int endOffset() {
      return -1;
    }

    @Override
    public BytesRef getPayload() {
      return null;
    }

    @Override
    public int advance(int target) {
      throw new UnsupportedOperationException();
    }

    @Override
    public long cost() {
      return end - next;
    }
  }
}
