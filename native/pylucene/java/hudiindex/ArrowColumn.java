package hudiindex;

/**
 * The buffers of one Arrow array, by address, in the columnar layout of the Arrow specification and
 * the machine's byte order.
 */
final class ArrowColumn {
  private final long validity;
  private final long offsets;
  private final long data;
  private final boolean largeOffsets;
  private final long start;

  ArrowColumn(long validity, long offsets, long data, boolean largeOffsets, long start) {
    this.validity = validity;
    this.offsets = offsets;
    this.data = data;
    this.largeOffsets = largeOffsets;
    this.start = start;
  }

  boolean hasOffsets() {
    return offsets != 0;
  }

  boolean hasData() {
    return data != 0;
  }

  boolean hasNulls() {
    return validity != 0;
  }

  /** An array without a validity buffer has no NULLs. */
  boolean isNull(long row) {
    if (validity == 0) {
      return false;
    }
    long bit = start + row;
    return (NativeMemory.getByte(validity + (bit >>> 3)) >>> (bit & 7) & 1) == 0;
  }

  long longAt(long row) {
    return NativeMemory.getLong(data + 8 * (start + row));
  }

  /** Number of bytes of the string or binary value at {@code row}. */
  int byteLength(long row) {
    long length = offset(row + 1) - offset(row);
    if (length < 0 || length > Integer.MAX_VALUE - 16) {
      throw new IllegalArgumentException("row " + row + " has an invalid length: " + length);
    }
    return (int) length;
  }

  /** Copies the first {@code length} bytes of the string or binary value at {@code row}. */
  void copy(long row, byte[] target, int length) {
    if (length > 0) { // an array of empty strings may have no data buffer
      NativeMemory.read(data + offset(row), target, length);
    }
  }

  /** Copies the value at {@code row} of an array in which every value has {@code width} bytes. */
  void copyFixed(long row, byte[] target, int width) {
    NativeMemory.read(data + width * (start + row), target, width);
  }

  private long offset(long row) {
    long at = start + row;
    return largeOffsets
        ? NativeMemory.getLong(offsets + 8 * at)
        : NativeMemory.getInt(offsets + 4 * at);
  }
}
