package hudiindex;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.Term;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.MatchAllDocsQuery;
import org.apache.lucene.search.MatchNoDocsQuery;
import org.apache.lucene.search.MultiPhraseQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.QueryVisitor;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.StringHelper;

/**
 * Rows whose text has some words one after the other, followed by a word with a prefix, if one is
 * given. A prefix that too many words have is ignored: rows that do not match are then found, too.
 */
public final class OpenPhrase extends Query {
  private static final int MOST_WORDS = 64;

  private final String field;
  private final String[] words;
  private final String beginning;

  /**
   * @param words as the analyzer produces them
   * @param beginning prefix of the last word; null if there is none
   */
  public OpenPhrase(String field, String[] words, String beginning) {
    this.field = field;
    this.words = words.clone();
    this.beginning = beginning;
  }

  @Override
  public Query rewrite(IndexSearcher searcher) throws IOException {
    List<Term[]> places = new ArrayList<>();
    for (String word : words) {
      places.add(new Term[] {new Term(field, word)});
    }
    if (beginning != null) {
      Set<BytesRef> last = begun(searcher);
      if (last.isEmpty()) {
        return new MatchNoDocsQuery("no word has the prefix");
      }
      if (last.size() <= MOST_WORDS) {
        places.add(last.stream().map(word -> new Term(field, word)).toArray(Term[]::new));
      }
    }
    if (places.isEmpty()) {
      return new MatchAllDocsQuery();
    }
    MultiPhraseQuery.Builder phrase = new MultiPhraseQuery.Builder();
    for (Term[] place : places) {
      phrase.add(place);
    }
    return phrase.build();
  }

  /** The words with the prefix, or more than {@link #MOST_WORDS} of them. */
  private Set<BytesRef> begun(IndexSearcher searcher) throws IOException {
    BytesRef begins = new BytesRef(beginning);
    Set<BytesRef> found = new TreeSet<>();
    for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
      Terms terms = leaf.reader().terms(field);
      TermsEnum each = terms == null ? TermsEnum.EMPTY : terms.iterator();
      if (each.seekCeil(begins) == TermsEnum.SeekStatus.END) {
        continue;
      }
      for (BytesRef word = each.term();
          word != null && StringHelper.startsWith(word, begins) && found.size() <= MOST_WORDS;
          word = each.next()) {
        found.add(BytesRef.deepCopyOf(word));
      }
    }
    return found;
  }

  @Override
  public void visit(QueryVisitor visitor) {
    if (visitor.acceptField(field)) {
      visitor.visitLeaf(this);
    }
  }

  @Override
  public String toString(String inField) {
    return field + ":" + Arrays.toString(words) + (beginning == null ? "" : beginning + "*");
  }

  @Override
  public boolean equals(Object other) {
    if (!sameClassAs(other)) {
      return false;
    }
    OpenPhrase that = (OpenPhrase) other;
    return field.equals(that.field)
        && Arrays.equals(words, that.words)
        && Objects.equals(beginning, that.beginning);
  }

  @Override
  public int hashCode() {
    return 31 * Objects.hash(classHash(), field, beginning) + Arrays.hashCode(words);
  }
}
