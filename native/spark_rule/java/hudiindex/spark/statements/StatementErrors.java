package hudiindex.spark.statements;

import hudiindex.spark.source.SourceFailed;
import hudiindex.spark.source.StatementFailed;
import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.trees.Origin;
import py4j.Py4JException;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;

/**
 * Errors of index statements as those that Spark has for its own, so that PySpark and others show
 * the message alone. Spark's error class is the service's code.
 */
final class StatementErrors {
  private static final QueryContext[] NO_CONTEXT = {};

  private StatementErrors() {}

  /** An error as users of the session see it; Spark's own as they are. */
  static Exception shown(Exception error) {
    if (error instanceof StatementFailed failed) {
      return failed.isInSyntax()
          ? inSyntax(failed.code(), failed.getMessage())
          : analysis(failed.code(), failed.getMessage());
    }
    if (error instanceof SourceFailed || error instanceof Py4JException) {
      return analysis(
          "INDEX_NOT_ANSWERING",
          "INDEX_NOT_ANSWERING: The index service has failed: "
              + error.getMessage()
              + ". See Python's log, or call hudi_index_service.sql.enable(spark) again.");
    }
    return error;
  }

  /** A statement of the service, before `enable`. */
  static Exception notEnabled() {
    return analysis(
        "INDEX_NOT_ENABLED",
        "INDEX_NOT_ENABLED: The index service is not enabled yet, which runs this statement. Call"
            + " hudi_index_service.sql.enable(spark) first.");
  }

  /** A result that is none of the statement as it was parsed. */
  static Exception changed() {
    return analysis(
        "INDEX_CHANGED",
        "INDEX_CHANGED: The table's indexes have changed while the statement ran. Run it again.");
  }

  private static AnalysisException analysis(String code, String message) {
    Option<Object> nowhere = Option.empty();
    return new AnalysisException(
        message,
        nowhere,
        nowhere,
        Option.empty(),
        Option.apply(code),
        noParameters(),
        NO_CONTEXT);
  }

  private static ParseException inSyntax(String code, String message) {
    Origin nowhere =
        new Origin(
            Option.empty(),
            Option.empty(),
            Option.empty(),
            Option.empty(),
            Option.empty(),
            Option.empty(),
            Option.empty());
    return new ParseException(
        Option.empty(), message, nowhere, nowhere, Option.apply(code), noParameters(), NO_CONTEXT);
  }

  private static Map<String, String> noParameters() {
    return Map$.MODULE$.empty();
  }
}
