package hudiindex.spark.source;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Expression;

/** Answers questions about the index. Messages are JSON, so the source may be another process. */
public interface Source {
  /**
   * Decides who reads the rows of a {@link Request}, and reads none.
   *
   * @return JSON, as {@link Decision} reads it
   */
  String decide(String request) throws Exception;

  /**
   * The rows of a request: at least those for which its conditions are TRUE.
   *
   * @param session by whose settings tasks read them
   * @param use the number of the relation's use
   */
  Rows rows(SparkSession session, String request, long use) throws Exception;

  /**
   * What a text is that begins like an index statement. Changes nothing.
   *
   * @param session resolves the names of tables
   * @return JSON with {@code columns}, those of the statement's result in Spark's DDL; for EXPLAIN
   *     INDEX also {@code query}, the text without the words before the query. Neither if the text
   *     is left to Spark.
   * @throws StatementFailed it is wrong
   */
  String statement(SparkSession session, String text) throws Exception;

  /**
   * Runs an index statement, however long it takes.
   *
   * @param arguments the values of the parameters: columns by name, or in their order
   * @throws StatementFailed it fails
   */
  Outcome run(SparkSession session, String text, Object arguments) throws Exception;

  /**
   * Finds out what a full-text call means.
   *
   * @param call in JSON, with {@code function}. A condition has {@code text}, what to search for,
   *     {@code edits} (may be null) and {@code columns}, all that it searches at once, each with
   *     {@code table} and {@code names}, from the outermost struct in. A score has {@code search},
   *     the call that it scores, and {@code relation}, a request for the rows.
   * @return JSON with {@code call}, equal for calls with the same meaning; or with {@code
   *     constant}, what a condition is for every text but NULL
   * @throws StatementFailed it means nothing
   */
  String bind(String call) throws Exception;

  /** A bound call on a text, as an expression that Spark's tasks can run. */
  Expression evaluated(String call, Expression text) throws Exception;

  /** Called by a thread that has made calls, and makes no more. */
  default void leave() {}
}
