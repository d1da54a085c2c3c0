package hudiindex;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.analysis.tokenattributes.PositionIncrementAttribute;
import org.apache.lucene.analysis.tokenattributes.TermToBytesRefAttribute;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.util.ArrayUtil;
import org.apache.lucene.util.BytesRef;

/**
 * The terms of analyzed text.
 *
 * <p>StandardAnalyzer splits plain ASCII into runs of letters and digits and lowercases them; this
 * class does so on the bytes, at a fraction of the cost. Any other text goes to the analyzer.
 */
final class TextTerms {
  /** The class of an ASCII character in Unicode's word break rules (UAX #29). */
  private static final byte BREAK = 0;

  private static final byte WORD = 1;

  /** Breaks a word unless there is a letter or digit on both sides. */
  private static final byte MIDDLE = 2;

  private static final byte OTHER = 3;

  private static final byte[] KINDS = new byte[256];

  static {
    for (int c = 0; c < KINDS.length; c++) {
      boolean word = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9';
      boolean other = c >= 0x80 || c == '_';
      boolean middle = ".,:;'".indexOf(c) >= 0;
      KINDS[c] = word ? WORD : other ? OTHER : middle ? MIDDLE : BREAK;
    }
  }

  private final String field;
  private final Analyzer analyzer;
  private final boolean plain;
  private byte[] utf8 = new byte[256];
  private int[] bounds = new int[64]; // begin and end of each run

  TextTerms(String field, Analyzer analyzer) {
    this.field = field;
    this.analyzer = analyzer;
    plain = isStandard(analyzer);
  }

  private static boolean isStandard(Analyzer analyzer) {
    if (analyzer.getClass() != StandardAnalyzer.class) {
      return false;
    }
    StandardAnalyzer standard = (StandardAnalyzer) analyzer;
    return standard.getMaxTokenLength() == StandardAnalyzer.DEFAULT_MAX_TOKEN_LENGTH
        && standard.getStopwordSet().isEmpty();
  }

  /**
   * Adds the terms of the text at {@code at} to a row.
   *
   * @return how many of them were truncated because they exceed Lucene's maximum
   */
  int add(ArrowColumn column, long at, Occurrences occurrences, int row) {
    int length = column.byteLength(at);
    utf8 = ArrayUtil.growNoCopy(utf8, length);
    column.copy(at, utf8, length);
    int words = plain ? plainWords(length) : -1;
    if (words < 0) {
      try {
        return analyze(length, occurrences, row);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
    for (int word = 0; word < words; word++) {
      int from = bounds[2 * word];
      occurrences.add(utf8, from, bounds[2 * word + 1] - from);
    }
    if (words > 0) {
      occurrences.endUsualRow(row, words);
    }
    return 0;
  }

  /**
   * Finds the words of plain text, and lowercases it in place.
   *
   * @return the number of words, or -1 if the text is not plain (it is then unchanged)
   */
  private int plainWords(int length) {
    int words = 0;
    boolean upper = false;
    for (int i = 0; i < length; ) {
      int kind = KINDS[utf8[i] & 0xFF];
      if (kind == BREAK) {
        i++;
        continue;
      }
      if (kind == MIDDLE) {
        // If a letter or digit precedes, its run has just ended here.
        if (i > 0 && isWord(i - 1) && i + 1 < length && KINDS[utf8[i + 1] & 0xFF] != BREAK) {
          return -1;
        }
        i++;
        continue;
      }
      int start = i;
      while (i < length && isWord(i)) {
        upper |= utf8[i] >= 'A' && utf8[i] <= 'Z';
        i++;
      }
      if (i == start || i - start > StandardAnalyzer.DEFAULT_MAX_TOKEN_LENGTH) {
        return -1;
      }
      if (2 * words == bounds.length) {
        bounds = ArrayUtil.grow(bounds);
      }
      bounds[2 * words] = start;
      bounds[2 * words + 1] = i;
      words++;
    }
    if (upper) {
      for (int i = 0; i < length; i++) {
        if (utf8[i] >= 'A' && utf8[i] <= 'Z') {
          utf8[i] += 'a' - 'A';
        }
      }
    }
    return words;
  }

  private boolean isWord(int i) {
    return KINDS[utf8[i] & 0xFF] == WORD;
  }

  private int analyze(int length, Occurrences occurrences, int row) throws IOException {
    String text = new String(utf8, 0, length, StandardCharsets.UTF_8);
    int cut = 0;
    int count = 0;
    int position = -1;
    try (TokenStream tokens = analyzer.tokenStream(field, text)) {
      TermToBytesRefAttribute term = tokens.addAttribute(TermToBytesRefAttribute.class);
      PositionIncrementAttribute step = tokens.addAttribute(PositionIncrementAttribute.class);
      tokens.reset();
      while (tokens.incrementToken()) {
        position = Math.addExact(position, step.getPositionIncrement());
        if (position < 0 || position > IndexWriter.MAX_POSITION) {
          throw new IllegalArgumentException("field " + field + ": token position " + position);
        }
        BytesRef bytes = term.getBytesRef();
        if (bytes.length > IndexWriter.MAX_TERM_LENGTH) {
          bytes.length = lengthOfWholeCharacters(bytes);
          cut++;
        }
        occurrences.add(bytes, count++, position);
      }
      tokens.end();
    }
    if (count > 0) {
      occurrences.endRow(row, count);
    }
    return cut;
  }

  /** The most bytes that fit in a term without splitting a character. */
  private static int lengthOfWholeCharacters(BytesRef bytes) {
    int length = IndexWriter.MAX_TERM_LENGTH;
    while ((bytes.bytes[bytes.offset + length] & 0xC0) == 0x80) {
      length--;
    }
    return length;
  }
}
