package hudiindex.spark.source;

/** The source did not answer, or not in time. */
public final class SourceFailed extends Exception {
  private static final long serialVersionUID = 1L;

  private static final String CODE = "INDEX_NOT_ANSWERING";
  private static final String REMEDY = "See the log of the Python process that answers.";

  private final String code;
  private final String remedy;
  private final boolean lasting;

  /** An answer is missing; the next may come. */
  public SourceFailed(String message) {
    this(message, null);
  }

  public SourceFailed(String message, Throwable cause) {
    this(CODE, message, REMEDY, false, cause);
  }

  private SourceFailed(
      String code, String message, String remedy, boolean lasting, Throwable cause) {
    super(message, cause);
    this.code = code;
    this.remedy = remedy;
    this.lasting = lasting;
  }

  /** No answer will come until somebody does something about it. */
  static SourceFailed lasting(String code, String message, String remedy) {
    return new SourceFailed(code, message, remedy, true, null);
  }

  /** The same without a code of the source's own. */
  static SourceFailed lasting(String message, String remedy, Throwable cause) {
    return new SourceFailed(CODE, message, remedy, true, cause);
  }

  public String code() {
    return code;
  }

  public String remedy() {
    return remedy;
  }

  /** Whether asking again is of no use. */
  boolean isLasting() {
    return lasting;
  }
}
