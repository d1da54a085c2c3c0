package hudiindex;

/**
 * Answers what Java asks the process. Implemented in Python: JCC writes the native methods.
 *
 * <p>Create one instance and keep it: the Python and Java objects hold references to each other.
 */
public class Caller {
  private static volatile Caller known;

  private long pythonObject;

  public Caller() {}

  /** Who is asked from now on. */
  public static void ask(Caller who) {
    known = who;
  }

  /** Who is asked; null for nobody. */
  static Caller known() {
    return known;
  }

  /** Required by JCC: stores the Python object that implements this one. */
  public void pythonExtension(long pythonObject) {
    this.pythonObject = pythonObject;
  }

  /** Required by JCC: the Python object that implements this one. */
  public long pythonExtension() {
    return pythonObject;
  }

  @Override
  @SuppressWarnings({"deprecation", "removal"})
  public void finalize() throws Throwable {
    pythonDecRef();
  }

  public native void pythonDecRef();

  /** Whether the calling thread's look-up is still wanted. If not, Python knows why. */
  public native boolean isWaiting();

  /**
   * Writes a block of a packed file, and others that may be requested next, to their places in the
   * local file. Any thread may call it, also several at once.
   *
   * @param file the number by which Python identifies the file
   * @return null if the block is present now, else the reason why it is not
   */
  public native String fetch(long file, int block);
}
