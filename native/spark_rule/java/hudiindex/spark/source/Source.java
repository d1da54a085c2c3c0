package hudiindex.spark.source;

/** Who knows the index. PlannedRead in JSON, so that it may be another process. */
public interface Source {
  /**
   * Decides who reads the rows of a {@link Request}, and reads none.
   *
   * @return JSON, as {@link Decision} reads it
   */
  String decide(String request) throws Exception;

  /** The rows of a request: at least those for which its conditions are TRUE. */
  Rows rows(String request) throws Exception;

  /** Called by a thread that has made calls, and makes no more. */
  default void leave() {}
}
