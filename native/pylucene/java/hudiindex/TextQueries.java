package hudiindex;

import java.io.IOException;
import java.util.LinkedHashSet;
import java.util.Set;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.tokenattributes.TermToBytesRefAttribute;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.AutomatonQuery;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.MatchNoDocsQuery;
import org.apache.lucene.search.PrefixQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.util.QueryBuilder;
import org.apache.lucene.util.automaton.LevenshteinAutomata;

/**
 * Full-text queries: a field is searched for a text, which is analyzed like the field. No query
 * depends on other content of the index. A text in which the analyzer finds no word matches no row.
 */
public final class TextQueries {
  private TextQueries() {}

  /** Rows with all words of the text, in any order. */
  public static Query all(Analyzer analyzer, String field, String text) {
    return found(new QueryBuilder(analyzer).createBooleanQuery(field, text, Occur.MUST));
  }

  /** Rows with any word of the text. */
  public static Query any(Analyzer analyzer, String field, String text) {
    return found(new QueryBuilder(analyzer).createBooleanQuery(field, text, Occur.SHOULD));
  }

  /** Rows with the words of the text one after the other. */
  public static Query phrase(Analyzer analyzer, String field, String text) {
    return found(new QueryBuilder(analyzer).createPhraseQuery(field, text));
  }

  /** Rows with a word that has this prefix, which is not split, but lowercased and so on. */
  public static Query prefix(Analyzer analyzer, String field, String beginning) {
    return new PrefixQuery(new Term(field, analyzer.normalize(field, beginning)));
  }

  /**
   * Rows that have, for each word of the text, a word at most this many edits away: characters
   * inserted, deleted or replaced, or two adjacent characters swapped.
   *
   * @param edits 0, 1 or 2
   */
  public static Query fuzzy(Analyzer analyzer, String field, String text, int edits)
      throws IOException {
    BooleanQuery.Builder all = new BooleanQuery.Builder();
    String[] words = words(analyzer, field, text);
    for (String word : words) {
      LevenshteinAutomata near = new LevenshteinAutomata(word, true);
      all.add(new AutomatonQuery(new Term(field, word), near.toAutomaton(edits)), Occur.FILTER);
    }
    return words.length == 0 ? found(null) : all.build();
  }

  /** The distinct words of a text, in their order. */
  public static String[] words(Analyzer analyzer, String field, String text) throws IOException {
    Set<String> words = new LinkedHashSet<>();
    try (TokenStream tokens = analyzer.tokenStream(field, text)) {
      TermToBytesRefAttribute term = tokens.addAttribute(TermToBytesRefAttribute.class);
      tokens.reset();
      while (tokens.incrementToken()) {
        words.add(term.getBytesRef().utf8ToString());
      }
      tokens.end();
    }
    return words.toArray(new String[0]);
  }

  private static Query found(Query query) {
    return query == null ? new MatchNoDocsQuery("no word") : query;
  }
}
