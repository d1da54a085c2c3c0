package hudiindex;

import java.io.IOException;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.util.BytesRef;

/**
 * Bounds of the number of rows of a segment with a term that a scan looks for, without looking at
 * rows: exact if there are few such terms, or few others.
 */
final class TermBounds {
  private final TermScan scan;
  private final int mostTerms;

  /**
   * @param mostTerms how many terms are examined within the scan's range, below it, and above it
   */
  TermBounds(TermScan scan, int mostTerms) {
    this.scan = scan;
    this.mostTerms = mostTerms;
  }

  Bounds in(LeafReader segment) throws IOException {
    Terms terms = segment.terms(scan.field);
    if (terms == null) {
      return Bounds.NONE;
    }
    TermsEnum each = terms.iterator();
    long sum = 0;
    long most = 0;
    long others = 0;
    int seen = 0;
    BytesRef term = scan.first(each);
    for (; term != null && !scan.isAbove(term) && seen < mostTerms; term = each.next()) {
      seen++;
      if (scan.fits(term)) {
        sum += each.docFreq();
        most = Math.max(most, each.docFreq());
      } else {
        others += each.docFreq();
      }
    }
    boolean whole = term == null || scan.isAbove(term);
    if (!RowBounds.hasOneTermARow(terms)) {
      return new Bounds(most, whole ? Math.min(sum, terms.getDocCount()) : terms.getDocCount());
    }
    if (whole) {
      return Bounds.exactly(sum);
    }
    Bounds outside = below(terms).plus(above(terms));
    long rest = terms.getDocCount() - others - outside.least();
    boolean exact = scan.pattern == null && outside.least() == outside.most();
    return exact ? Bounds.exactly(rest) : new Bounds(sum, rest);
  }

  private Bounds below(Terms terms) throws IOException {
    if (scan.low == null) {
      return Bounds.NONE;
    }
    long sum = 0;
    int seen = 0;
    TermsEnum each = terms.iterator();
    for (BytesRef term = each.next(); term != null; term = each.next()) {
      int order = term.compareTo(scan.low);
      if (order > 0 || order == 0 && scan.lowIncluded) {
        break;
      }
      if (++seen > mostTerms) {
        return new Bounds(sum, terms.getDocCount());
      }
      sum += each.docFreq();
    }
    return Bounds.exactly(sum);
  }

  private Bounds above(Terms terms) throws IOException {
    if (scan.high == null) {
      return Bounds.NONE;
    }
    long sum = 0;
    int seen = 0;
    TermsEnum each = terms.iterator();
    for (BytesRef term = TermScan.seek(each, scan.high); term != null; term = each.next()) {
      if (++seen > mostTerms) {
        return new Bounds(sum, terms.getDocCount());
      }
      sum += scan.isAbove(term) ? each.docFreq() : 0;
    }
    return Bounds.exactly(sum);
  }
}
