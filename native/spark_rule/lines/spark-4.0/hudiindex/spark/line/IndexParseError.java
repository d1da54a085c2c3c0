package hudiindex.spark.line;

import hudiindex.spark.Scala;
import java.util.Map;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.trees.CurrentOrigin;
import org.apache.spark.sql.catalyst.trees.Origin;
import scala.Option;

/**
 * An error in an index statement. Spark 4 makes the texts of its own errors from a list of their
 * classes, which has none of ours.
 */
final class IndexParseError extends ParseException {
  private static final long serialVersionUID = 1L;

  /** One of Spark's classes without parameters, which stands for ours. */
  private static final String LISTED = "PARSE_EMPTY_STATEMENT";

  private final String code;
  private final String text;
  private final transient Map<String, String> parameters;

  IndexParseError(String code, String text, Map<String, String> parameters) {
    this(code, text, parameters, CurrentOrigin.get());
  }

  private IndexParseError(
      String code, String text, Map<String, String> parameters, Origin nowhere) {
    super(Option.empty(), nowhere, nowhere, LISTED, Scala.immutable(Map.of()));
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
