package hudiindex.spark.source;

/** An index statement is wrong, or has failed, for a reason that the source states. */
public final class StatementFailed extends Exception {
  private static final long serialVersionUID = 1L;

  private final String code;
  private final boolean inSyntax;

  /**
   * @param code for programs to test
   * @param message what is wrong and what to do about it, in one line
   * @param inSyntax whether the text is no statement at all
   */
  public StatementFailed(String code, String message, boolean inSyntax) {
    super(message);
    this.code = code;
    this.inSyntax = inSyntax;
  }

  public String code() {
    return code;
  }

  public boolean isInSyntax() {
    return inSyntax;
  }
}
