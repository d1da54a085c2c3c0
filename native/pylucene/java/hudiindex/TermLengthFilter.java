package hudiindex;

import java.io.IOException;
import org.apache.lucene.analysis.TokenFilter;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.util.UnicodeUtil;

/**
 * Cuts tokens to the longest whole characters that fit in {@link IndexWriter#MAX_TERM_LENGTH} UTF-8
 * bytes.
 *
 * <p>Lucene refuses a document with a longer term, and a refused document would shift the doc ids of
 * all rows behind it. Most analysers split at 255 characters; KeywordAnalyzer does not.
 */
final class TermLengthFilter extends TokenFilter {
  private final CharTermAttribute term = addAttribute(CharTermAttribute.class);
  private final Runnable onCut;

  TermLengthFilter(TokenStream input, Runnable onCut) {
    super(input);
    this.onCut = onCut;
  }

  @Override
  public boolean incrementToken() throws IOException {
    if (!input.incrementToken()) {
      return false;
    }
    if (UnicodeUtil.calcUTF16toUTF8Length(term, 0, term.length()) > IndexWriter.MAX_TERM_LENGTH) {
      term.setLength(charsThatFit());
      onCut.run();
    }
    return true;
  }

  private int charsThatFit() {
    int chars = 0;
    int bytes = 0;
    while (chars < term.length()) {
      int width = Character.charCount(Character.codePointAt(term, chars));
      bytes += UnicodeUtil.calcUTF16toUTF8Length(term, chars, width);
      if (bytes > IndexWriter.MAX_TERM_LENGTH) {
        break;
      }
      chars += width;
    }
    return chars;
  }
}
