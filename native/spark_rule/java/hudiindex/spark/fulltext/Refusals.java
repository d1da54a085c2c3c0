package hudiindex.spark.fulltext;

import hudiindex.spark.SparkErrors;
import org.apache.spark.sql.catalyst.expressions.Expression;

/** Why a call has no answer, and what to do about it. */
final class Refusals {
  private static final String UNSUPPORTED = "PREDICATE_UNSUPPORTED";
  private static final String INVALID = "PREDICATE_INVALID";
  private static final String NO_SCORE = "SCORE_UNAVAILABLE";

  private Refusals() {}

  static Exception noColumn(String name, Expression text) {
    return refusal(
        UNSUPPORTED,
        name + " searches " + text.sql() + ", which is not a column of a Hudi table there.",
        "Name the column itself; call the function in the sub-query or view that reads the table.");
  }

  static Exception inMerge(String name) {
    return refusal(
        UNSUPPORTED,
        name + " cannot stand in the conditions of MERGE itself.",
        "Call it in the query after USING.");
  }

  static Exception arguments(String name, int number, boolean mayHaveEdits) {
    return refusal(
        INVALID,
        name + " was called with " + number + " arguments.",
        "Give it a column and the text to search for"
            + (mayHaveEdits ? ", and the maximum number of edits of a word." : "."));
  }

  static Exception noText(String name, Expression text) {
    return refusal(
        UNSUPPORTED,
        name
            + " cannot search for "
            + text.sql()
            + ", which is no text or not known before the query runs.",
        "Quote the text, or pass it as a parameter of the query.");
  }

  static Exception noEdits(String name) {
    return refusal(
        UNSUPPORTED,
        name + " takes a number of edits that is known before the query runs.",
        "Write the number.");
  }

  static Exception scoreOfArguments() {
    return refusal(INVALID, "score() was called with arguments.", "Call it without arguments.");
  }

  static Exception noSearch() {
    return refusal(
        NO_SCORE,
        "score() is called in a query block without a match.",
        "Call it in the SELECT, or its ORDER BY, whose WHERE has the one match.");
  }

  static Exception severalSearches(int number) {
    return refusal(
        NO_SCORE,
        "score() is ambiguous in a query block with " + number + " searches.",
        "Keep one of them, or move the others to an outer query.");
  }

  static Exception scoreOfUnion() {
    return refusal(
        NO_SCORE, "score() is called above a UNION of tables.", "Call it below the UNION.");
  }

  static Exception noTextToScore() {
    return refusal(
        NO_SCORE,
        "score() is called where the searched text is not available.",
        "Call it in the SELECT, or its ORDER BY, whose WHERE has the one match.");
  }

  static Exception noSnapshotToScore() {
    return refusal(
        NO_SCORE,
        "score() needs a snapshot query of the table.",
        "Query the table as it is now, or as of an instant.");
  }

  private static Exception refusal(String code, String message, String remedy) {
    return SparkErrors.analysis(code, message, remedy);
  }
}
