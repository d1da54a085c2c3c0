package hudiindex.spark.line;

import java.util.Map;

/**
 * An error in an index statement. Spark 4 makes the texts of its own errors from a list of their
 * classes, which has none of ours.
 */
final class IndexParseError extends LineParseError {
  private static final long serialVersionUID = 1L;

  /** One of Spark's classes without parameters, which stands for ours. */
  private static final String LISTED = "PARSE_EMPTY_STATEMENT";

  private final String code;
  private final String text;
  private final transient Map<String, String> parameters;

  IndexParseError(String code, String text, Map<String, String> parameters) {
    super(LISTED);
    this.code = code;
    this.text = text;
    this.parameters = parameters;
  }

  @Override
  public String getMessage() {
    return text;
  }

  @Override
  public String getCondition() {
    return code;
  }

  @Override
  public Map<String, String> getMessageParameters() {
    return parameters;
  }
}
