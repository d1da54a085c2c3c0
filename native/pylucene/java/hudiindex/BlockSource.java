package hudiindex;

/**
 * Where the blocks of packed files come from that are not on this machine yet. Implemented in Python:
 * JCC writes the native methods.
 *
 * <p>Make one and keep it: Python and Java hold each other's object.
 */
public class BlockSource {
  private long pythonObject;

  public BlockSource() {}

  /** JCC's: remembers the Python object that implements this one. */
  public void pythonExtension(long pythonObject) {
    this.pythonObject = pythonObject;
  }

  /** JCC's: the Python object that implements this one. */
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
   * Writes a block, and others that may be asked for next, to its place in the local file. Any
   * thread may call it, several at once.
   *
   * @param file the number that Python knows the file by
   * @return null if the block is there now, else why it is not
   */
  public native String fetch(long file, int block);
}
