package hudiindex.spark.statements;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/** The first words of a text, which decide whether it may be an index statement. */
final class FirstWords {
  private static final int MOST = 3;

  /** The statements' first words that Spark has for none of its own, nor Hudi. */
  private static final Set<List<String>> ONLY_OURS =
      Set.of(
          List.of("ALTER", "INDEX"),
          List.of("OPTIMIZE", "TABLE"),
          List.of("SHOW", "INDEXING"),
          List.of("CANCEL", "INDEXING"),
          List.of("EXPLAIN", "INDEX"));

  private static final Set<List<String>> HUDIS_TOO =
      Set.of(
          List.of("CREATE", "INDEX"),
          List.of("DROP", "INDEX"),
          List.of("SHOW", "INDEXES"),
          List.of("REFRESH", "INDEX"));

  private static final List<String> ANALYZE = List.of("EXPLAIN", "ANALYZE", "INDEX");

  private final String text;
  private int offset;

  private FirstWords(String text) {
    this.text = text;
  }

  /** Whether a text begins like an index statement. */
  static boolean mayBeOurs(String text) {
    List<String> words = of(text);
    return areOnlyOurs(words) || HUDIS_TOO.contains(firstTwo(words));
  }

  /** Whether a text begins like an index statement, and like no statement of Spark or Hudi. */
  static boolean areOnlyOurs(String text) {
    return areOnlyOurs(of(text));
  }

  /** Whether a text begins with OPTIMIZE alone, as in others' SQL. */
  static boolean areAlmostOurs(String text) {
    List<String> words = of(text);
    return !words.isEmpty() && words.get(0).equals("OPTIMIZE");
  }

  private static boolean areOnlyOurs(List<String> words) {
    return ONLY_OURS.contains(firstTwo(words)) || words.equals(ANALYZE);
  }

  private static List<String> firstTwo(List<String> words) {
    return words.size() < 2 ? words : words.subList(0, 2);
  }

  private static List<String> of(String text) {
    FirstWords reader = new FirstWords(text);
    List<String> words = new ArrayList<>();
    while (words.size() < MOST) {
      String word = reader.next();
      if (word.isEmpty()) {
        break;
      }
      words.add(word);
    }
    return words;
  }

  /** The next word in upper case; empty if another token comes first. */
  private String next() {
    skipGaps();
    int start = offset;
    while (offset < text.length() && isOfWord(text.charAt(offset))) {
      offset++;
    }
    return text.substring(start, offset).toUpperCase(Locale.ROOT);
  }

  private static boolean isOfWord(char c) {
    return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_';
  }

  /** Skips white space and comments, by the rules of Spark's SqlBaseLexer.g4. */
  private void skipGaps() {
    while (offset < text.length()) {
      if (" \t\r\n".indexOf(text.charAt(offset)) >= 0) {
        offset++;
      } else if (text.startsWith("--", offset)) {
        skipLine();
      } else if (text.startsWith("/*", offset) && !text.startsWith("/*+", offset)) {
        skipBracketed();
      } else {
        return;
      }
    }
  }

  /** To the end of the line; after a backslash a comment goes on in the next one. */
  private void skipLine() {
    while (offset < text.length() && "\r\n".indexOf(text.charAt(offset)) < 0) {
      offset += text.startsWith("\\\n", offset) ? 2 : 1;
    }
  }

  /** Bracketed comments nest. */
  private void skipBracketed() {
    int depth = 0;
    do {
      if (text.startsWith("/*", offset)) {
        depth++;
        offset += 2;
      } else if (text.startsWith("*/", offset)) {
        depth--;
        offset += 2;
      } else {
        offset++;
      }
    } while (depth > 0 && offset < text.length());
  }
}
