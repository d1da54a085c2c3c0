package hudiindex;

/**
 * Knows whether a look-up is still wanted. Implemented in Python: JCC writes the native methods.
 *
 * <p>Create one instance and keep it: the Python and Java objects hold references to each other.
 */
public class Caller {
  private long pythonObject;

  public Caller() {}

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
}
