package hudiindex.spark.source;

/** An index statement or a full-text call is wrong, or has failed, as the source states. */
public final class StatementFailed extends Exception {
  private static final long serialVersionUID = 1L;

  private final String code;
  private final String remedy;
  private final boolean inSyntax;

  /**
   * @param code for programs to test
   * @param message what is wrong
   * @param remedy what to do about it
   * @param inSyntax whether the text is no statement at all
   */
  public StatementFailed(String code, String message, String remedy, boolean inSyntax) {
    super(message);
    this.code = code;
    this.remedy = remedy;
    this.inSyntax = inSyntax;
  }

  public String remedy() {
    return remedy;
  }

  public String code() {
    return code;
  }

  public boolean isInSyntax() {
    return inSyntax;
  }
}
