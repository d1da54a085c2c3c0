package hudiindex.spark;

import hudiindex.spark.line.SparkLine;
import hudiindex.spark.source.SourceFailed;
import hudiindex.spark.source.StatementFailed;
import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.parser.ParseException;
import py4j.Py4JException;
import scala.Option;
import scala.collection.immutable.Map;

/**
 * The service's errors as those that Spark has for its own, so that PySpark and others show the
 * message alone. Spark's error class is the service's code.
 */
public final class SparkErrors {
  private static final QueryContext[] NO_CONTEXT = {};

  private SparkErrors() {}

  /** An error as users of the session see it; Spark's own as they are. */
  public static Exception shown(Exception error) {
    if (error instanceof StatementFailed failed) {
      return failed.isInSyntax()
          ? inSyntax(failed.code(), failed.getMessage(), failed.remedy())
          : analysis(failed.code(), failed.getMessage(), failed.remedy());
    }
    if (error instanceof SourceFailed failed) {
      return analysis(
          failed.code(),
          "The index service has failed: " + failed.getMessage() + ".",
          failed.remedy());
    }
    if (error instanceof Py4JException) {
      return analysis(
          "INDEX_NOT_ANSWERING",
          "The index service has failed: " + error.getMessage() + ".",
          "See Python's log, or call hudi_index_service.sql.enable(spark) again.");
    }
    return error;
  }

  /**
   * Something of the service, before `enable`.
   *
   * @param task what the service would do
   */
  public static Exception notEnabled(String task) {
    return analysis(
        "INDEX_NOT_ENABLED",
        "The index service is not enabled yet, which " + task + ".",
        "Call hudi_index_service.sql.enable(spark) first; without Python, start the session with"
            + " the settings that hudi-index serve-spark prints.");
  }

  /** OPTIMIZE in a form that nobody here takes. */
  public static ParseException notOptimize() {
    return inSyntax(
        "STATEMENT_INVALID",
        "No parser of this session takes this OPTIMIZE.",
        "To build what is due of a table's indexes: OPTIMIZE TABLE <table>.");
  }

  /** A result that is none of the statement as it was parsed. */
  public static Exception changed() {
    return analysis(
        "INDEX_CHANGED",
        "The table's indexes have changed while the statement ran.",
        "Run it again.");
  }

  /**
   * An error in a query: the text is code, message and remedy.
   *
   * @param message what is wrong
   * @param remedy what to do about it
   */
  public static AnalysisException analysis(String code, String message, String remedy) {
    Option<Object> nowhere = Option.empty();
    return new AnalysisException(
        text(code, message, remedy),
        nowhere,
        nowhere,
        Option.empty(),
        Option.apply(code),
        parameters(message, remedy),
        NO_CONTEXT);
  }

  private static ParseException inSyntax(String code, String message, String remedy) {
    return SparkLine.parseError(code, text(code, message, remedy), parameters(message, remedy));
  }

  private static String text(String code, String message, String remedy) {
    return (code + ": " + message + " " + remedy).stripTrailing();
  }

  /** The parts of the text, for programs. */
  private static Map<String, String> parameters(String message, String remedy) {
    return Scala.immutable(java.util.Map.of("message", message, "remedy", remedy));
  }
}
