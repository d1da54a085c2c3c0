package hudiindex;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.PointValues;
import org.apache.lucene.index.Term;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.MatchNoDocsQuery;
import org.apache.lucene.search.MultiPhraseQuery;
import org.apache.lucene.search.MultiTermQuery;
import org.apache.lucene.search.PhraseQuery;
import org.apache.lucene.search.PointInSetQuery;
import org.apache.lucene.search.PointRangeQuery;
import org.apache.lucene.search.PrefixQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.SynonymQuery;
import org.apache.lucene.search.TermInSetQuery;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.BytesRefIterator;

/**
 * Lower and upper bound of the number of rows that match a query, only from the statistics of term
 * dictionaries and point trees: no row is looked at. Indexes have no deleted rows.
 */
public final class RowBounds {
  /** Looking up one term takes as long as iterating over this many. */
  static final int TERMS_A_LOOKUP = 4;

  /** Looking up one point takes as long as iterating over this many terms. */
  private static final int TERMS_A_POINT = 16;

  private final LeafReader segment;
  private final int mostTerms;
  private final boolean leaves;

  private RowBounds(LeafReader segment, int mostTerms, boolean leaves) {
    this.segment = segment;
    this.mostTerms = mostTerms;
    this.leaves = leaves;
  }

  /**
   * The bounds: the lower bound in the upper 32 bits, the upper bound in the lower 32 bits.
   *
   * @param mostTerms how many terms of a query with many are examined (fewer if they must be looked
   *     up, or are points); the other terms may have any of the remaining rows
   * @param leaves whether the leaves at the ends of a range of points may be read
   */
  public static long of(IndexSearcher searcher, Query query, int mostTerms, boolean leaves)
      throws IOException {
    List<LeafReaderContext> segments = searcher.getIndexReader().leaves();
    int most = mostTerms / Math.max(1, segments.size());
    Bounds found = Bounds.NONE;
    for (LeafReaderContext each : segments) {
      found = found.plus(new RowBounds(each.reader(), most, leaves).of(query));
    }
    return found.least() << 32 | found.most();
  }

  private Bounds of(Query query) throws IOException {
    if (query instanceof TermQuery) {
      return of(((TermQuery) query).getTerm());
    }
    if (query instanceof PointRangeQuery) {
      PointRangeQuery range = (PointRangeQuery) query;
      return between(range.getField(), range.getLowerPoint(), range.getUpperPoint());
    }
    if (query instanceof PointBits) {
      return of(((PointBits) query).range());
    }
    if (query instanceof TermScan) {
      return new TermBounds((TermScan) query, mostTerms).in(segment);
    }
    if (query instanceof BooleanQuery) {
      return of((BooleanQuery) query);
    }
    if (query instanceof PointInSetQuery) {
      return of((PointInSetQuery) query);
    }
    if (query instanceof TermInSetQuery) {
      return of((TermInSetQuery) query);
    }
    if (query instanceof PrefixQuery) {
      TermScan scan = TermScan.of(((PrefixQuery) query).getPrefix());
      return new TermBounds(scan, mostTerms).in(segment);
    }
    if (query instanceof PhraseQuery) {
      return ofPhrase(Arrays.asList(((PhraseQuery) query).getTerms()));
    }
    if (query instanceof MultiPhraseQuery) {
      return of((MultiPhraseQuery) query);
    }
    if (query instanceof SynonymQuery) {
      return anyOf(((SynonymQuery) query).getTerms());
    }
    if (query instanceof MatchNoDocsQuery) {
      return Bounds.NONE;
    }
    if (query instanceof MultiTermQuery) {
      return Bounds.upTo(rowsWith(((MultiTermQuery) query).getField()));
    }
    return Bounds.upTo(segment.maxDoc());
  }

  private Bounds of(Term term) throws IOException {
    return Bounds.exactly(segment.docFreq(term));
  }

  private Bounds of(BooleanQuery query) throws IOException {
    List<Query> needed = new ArrayList<>();
    List<Query> optional = new ArrayList<>();
    for (BooleanClause clause : query) {
      if (clause.isProhibited()) {
        return Bounds.upTo(segment.maxDoc());
      }
      (clause.isRequired() ? needed : optional).add(clause.getQuery());
    }
    if (query.getMinimumNumberShouldMatch() > (needed.isEmpty() ? 1 : 0)) {
      return Bounds.upTo(segment.maxDoc());
    }
    Set<Query> clauses = new LinkedHashSet<>(needed.isEmpty() ? optional : needed);
    List<Bounds> each = new ArrayList<>();
    for (Query clause : clauses) {
      each.add(of(clause));
    }
    String field = commonField(clauses);
    long rows = field == null ? segment.maxDoc() : rowsWith(field);
    if (!needed.isEmpty()) {
      return Bounds.allOf(each, rows);
    }
    return field != null && hasOneTermARow(segment.terms(field))
        ? Bounds.oneOf(each, rows)
        : Bounds.anyOf(each, rows);
  }

  /** The field, if all clauses are terms of one field; otherwise null. */
  private static String commonField(Set<Query> clauses) {
    String field = null;
    for (Query clause : clauses) {
      if (!(clause instanceof TermQuery)) {
        return null;
      }
      String its = ((TermQuery) clause).getTerm().field();
      if (field != null && !field.equals(its)) {
        return null;
      }
      field = its;
    }
    return field;
  }

  private Bounds of(TermInSetQuery query) throws IOException {
    Terms terms = segment.terms(query.getField());
    if (terms == null) {
      return Bounds.NONE;
    }
    TermsEnum found = terms.iterator();
    BytesRefIterator asked = query.getBytesRefIterator();
    List<Bounds> each = new ArrayList<>();
    int left = mostTerms / TERMS_A_LOOKUP;
    BytesRef term = asked.next();
    for (; term != null && left-- > 0; term = asked.next()) {
      if (found.seekExact(term)) {
        each.add(Bounds.exactly(found.docFreq()));
      }
    }
    int rows = terms.getDocCount();
    Bounds known = hasOneTermARow(terms) ? Bounds.oneOf(each, rows) : Bounds.anyOf(each, rows);
    return term == null ? known : new Bounds(known.least(), rows);
  }

  private Bounds of(PointInSetQuery query) throws IOException {
    PointValues values = segment.getPointValues(query.getField());
    if (values == null) {
      return Bounds.NONE;
    }
    long least = 0;
    long most = 0;
    int left = mostTerms / TERMS_A_POINT;
    for (byte[] point : query.getPackedPoints()) {
      if (left-- == 0) {
        most = values.size();
        break;
      }
      PointCount count = new PointCount(point, point, leaves).of(values);
      least += count.inside;
      most += count.inside + count.crossing;
    }
    return rowsOf(values, least, most);
  }

  private Bounds between(String field, byte[] low, byte[] high) throws IOException {
    PointValues values = segment.getPointValues(field);
    if (values == null) {
      return Bounds.NONE;
    }
    PointCount count = new PointCount(low, high, leaves).of(values);
    return rowsOf(values, count.inside, count.inside + count.crossing);
  }

  /** Bounds of the rows of some points: a row may have several, and the same one several times. */
  private static Bounds rowsOf(PointValues values, long least, long most) {
    long sure = values.size() == values.getDocCount() ? least : Math.min(1, least);
    return new Bounds(sure, Math.min(values.getDocCount(), most));
  }

  private Bounds of(MultiPhraseQuery query) throws IOException {
    long most = segment.maxDoc();
    for (Term[] place : query.getTermArrays()) {
      most = Math.min(most, anyOf(Arrays.asList(place)).most());
    }
    return Bounds.upTo(most);
  }

  private Bounds ofPhrase(List<Term> terms) throws IOException {
    long most = terms.isEmpty() ? 0 : segment.maxDoc();
    for (Term term : terms) {
      most = Math.min(most, segment.docFreq(term));
    }
    return Bounds.upTo(most);
  }

  private Bounds anyOf(List<Term> terms) throws IOException {
    List<Bounds> each = new ArrayList<>();
    for (Term term : terms) {
      each.add(of(term));
    }
    return Bounds.anyOf(each, segment.maxDoc());
  }

  private long rowsWith(String field) throws IOException {
    Terms terms = segment.terms(field);
    return terms == null ? 0 : terms.getDocCount();
  }

  /** Whether no row has more than one term of the field. */
  static boolean hasOneTermARow(Terms terms) throws IOException {
    return terms != null && terms.getSumDocFreq() == terms.getDocCount();
  }
}
