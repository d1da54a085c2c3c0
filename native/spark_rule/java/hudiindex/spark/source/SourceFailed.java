package hudiindex.spark.source;

/** The source did not answer, or not in time. */
public final class SourceFailed extends Exception {
  private static final long serialVersionUID = 1L;

  public SourceFailed(String message) {
    super(message);
  }

  public SourceFailed(String message, Throwable cause) {
    super(message, cause);
  }
}
