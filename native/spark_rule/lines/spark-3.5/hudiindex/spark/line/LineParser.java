package hudiindex.spark.line;

import org.apache.spark.sql.catalyst.parser.ParserInterface;

/** The parsers of this line of Spark's releases: 3.5. */
public abstract class LineParser extends DelegatingParser {
  /**
   * @param before takes the texts that are left
   */
  protected LineParser(ParserInterface before) {
    super(before);
  }

  /** Whether a text is left to the parser before. */
  protected abstract boolean isLeft(String text);
}
