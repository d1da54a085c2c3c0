package hudiindex;

/**
 * Provides the blocks of packed files that are not on this machine yet. Implemented in Python: JCC
 * writes the native methods.
 *
 * <p>Create one instance and keep it: the Python and Java objects hold references to each other.
 */
public class BlockSource {
  private long pythonObject;

  public BlockSource() {}

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

  /**
   * Writes a block, and others that may be requested next, to their places in the local file. Any
   * thread may call it, also several at once.
   *
   * @param file the number by which Python identifies the file
   * @return null if the block is present now, else the reason why it is not
   */
  public native String fetch(long file, int block);
}
