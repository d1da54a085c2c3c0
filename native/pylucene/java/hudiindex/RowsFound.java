package hudiindex;

/** The rows that many indexes have found. */
public final class RowsFound {
  private final int[][] rows;

  /** The rows of each index, ascending; null for an index that is to be asked alone. */
  RowsFound(int[][] rows) {
    this.rows = rows;
  }

  /** The number of rows of all indexes together. */
  public long size() {
    long size = 0;
    for (int[] each : rows) {
      size += each == null ? 0 : each.length;
    }
    return size;
  }

  /**
   * Writes the rows.
   *
   * @param counts address of one int per index, which is set to the number of its rows; to -1 for
   *     an index that is to be asked alone
   * @param ids address of as many ints as there are rows; all row ids are written there one after
   *     the other, in the order of the indexes
   */
  public void into(long counts, long ids) {
    int[] sizes = new int[rows.length];
    long end = ids;
    for (int i = 0; i < rows.length; i++) {
      if (rows[i] == null) {
        sizes[i] = -1;
        continue;
      }
      sizes[i] = rows[i].length;
      NativeMemory.write(rows[i], sizes[i], end);
      end += 4L * sizes[i];
    }
    NativeMemory.write(sizes, sizes.length, counts);
  }
}
