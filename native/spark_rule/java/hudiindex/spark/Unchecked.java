package hudiindex.spark;

/** Checked exceptions through Scala's interfaces, which declare none. */
public final class Unchecked {
  private Unchecked() {}

  /** Throws an exception as it is. The return type is for a throw statement. */
  public static RuntimeException thrown(Exception exception) {
    return Unchecked.<RuntimeException>as(exception);
  }

  @SuppressWarnings("unchecked") // that is the trick
  private static <E extends Exception> RuntimeException as(Exception exception) throws E {
    throw (E) exception;
  }
}
