package hudiindex;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.lucene.store.AlreadyClosedException;
import org.apache.lucene.store.IndexInput;
import org.apache.lucene.store.RandomAccessInput;

/**
 * A range of a {@link PackedFile} as a Lucene input. Reads go directly to the mapped block; only
 * entering a block costs more, because the file returns only checked blocks.
 */
final class PackedInput extends IndexInput implements RandomAccessInput {
  /**
   * No block entered yet: the first read enters one. It has the same class as a mapped block, so
   * that the compiler can inline the reads.
   */
  private static final ByteBuffer NONE = ByteBuffer.allocateDirect(0).asReadOnlyBuffer();

  private final PackedFile file;
  private final long start;
  private final long length;

  /** The current block, limited to the end of this input; its position is the input's position. */
  private ByteBuffer current = NONE;

  /** Offset of {@link #current} in the file. */
  private long currentStart;

  private boolean closed;

  PackedInput(String description, PackedFile file, long start, long length) {
    super(description);
    this.file = file;
    this.start = start;
    this.length = length;
    currentStart = start;
  }

  @Override
  public long length() {
    return length;
  }

  @Override
  public long getFilePointer() {
    return currentStart + current.position() - start;
  }

  @Override
  public void seek(long position) throws IOException {
    if (position < 0 || position > length) {
      throw new EOFException("seek to " + position + " of " + length + " bytes: " + this);
    }
    long inCurrent = start + position - currentStart;
    if (inCurrent >= 0 && inCurrent <= current.limit()) {
      current.position((int) inCurrent);
    } else {
      leaveBlock(start + position);
    }
  }

  @Override
  public byte readByte() throws IOException {
    if (!current.hasRemaining()) {
      enterBlock();
    }
    return current.get();
  }

  @Override
  public void readBytes(byte[] target, int offset, int count) throws IOException {
    while (count > 0) {
      if (!current.hasRemaining()) {
        enterBlock();
      }
      int here = Math.min(count, current.remaining());
      current.get(target, offset, here);
      offset += here;
      count -= here;
    }
  }

  @Override
  public short readShort() throws IOException {
    return current.remaining() >= Short.BYTES ? current.getShort() : super.readShort();
  }

  @Override
  public int readInt() throws IOException {
    return current.remaining() >= Integer.BYTES ? current.getInt() : super.readInt();
  }

  @Override
  public long readLong() throws IOException {
    return current.remaining() >= Long.BYTES ? current.getLong() : super.readLong();
  }

  @Override
  public void readInts(int[] target, int offset, int count) throws IOException {
    if (current.remaining() / Integer.BYTES >= count) {
      current.asIntBuffer().get(target, offset, count);
      current.position(current.position() + count * Integer.BYTES);
    } else {
      super.readInts(target, offset, count);
    }
  }

  @Override
  public void readLongs(long[] target, int offset, int count) throws IOException {
    if (current.remaining() / Long.BYTES >= count) {
      current.asLongBuffer().get(target, offset, count);
      current.position(current.position() + count * Long.BYTES);
    } else {
      super.readLongs(target, offset, count);
    }
  }

  @Override
  public void readFloats(float[] target, int offset, int count) throws IOException {
    if (current.remaining() / Float.BYTES >= count) {
      current.asFloatBuffer().get(target, offset, count);
      current.position(current.position() + count * Float.BYTES);
    } else {
      super.readFloats(target, offset, count);
    }
  }

  @Override
  public byte readByte(long position) throws IOException {
    long at = fileOffset(position, 1);
    int block = (int) (at / file.blockSize());
    return file.block(block).get((int) (at - (long) block * file.blockSize()));
  }

  @Override
  public short readShort(long position) throws IOException {
    long at = fileOffset(position, Short.BYTES);
    int block = (int) (at / file.blockSize());
    int inBlock = (int) (at - (long) block * file.blockSize());
    if (inBlock + Short.BYTES <= file.blockSize()) {
      return file.block(block).getShort(inBlock);
    }
    return (short) (readByte(position) & 0xFF | readByte(position + 1) << 8);
  }

  @Override
  public int readInt(long position) throws IOException {
    long at = fileOffset(position, Integer.BYTES);
    int block = (int) (at / file.blockSize());
    int inBlock = (int) (at - (long) block * file.blockSize());
    if (inBlock + Integer.BYTES <= file.blockSize()) {
      return file.block(block).getInt(inBlock);
    }
    return readShort(position) & 0xFFFF | readShort(position + 2) << 16;
  }

  @Override
  public long readLong(long position) throws IOException {
    long at = fileOffset(position, Long.BYTES);
    int block = (int) (at / file.blockSize());
    int inBlock = (int) (at - (long) block * file.blockSize());
    if (inBlock + Long.BYTES <= file.blockSize()) {
      return file.block(block).getLong(inBlock);
    }
    return readInt(position) & 0xFFFFFFFFL | (long) readInt(position + 4) << 32;
  }

  @Override
  public IndexInput slice(String description, long offset, long count) throws IOException {
    refuseClosed();
    if (offset < 0 || count < 0 || offset > length - count) {
      throw new IllegalArgumentException(
          "slice " + description + " from " + offset + " of " + count + " bytes of " + this);
    }
    return new PackedInput(getFullSliceDescription(description), file, start + offset, count);
  }

  @Override
  public PackedInput clone() {
    refuseClosed();
    PackedInput clone = (PackedInput) super.clone();
    clone.leaveBlock(start + getFilePointer()); // a buffer's position belongs to one input
    return clone;
  }

  @Override
  public void close() {
    closed = true;
    leaveBlock(start);
  }

  private void leaveBlock(long position) {
    current = NONE;
    currentStart = position;
  }

  private void enterBlock() throws IOException {
    refuseClosed();
    long position = currentStart + current.position();
    if (position >= start + length) {
      throw new EOFException("read past the end: " + this);
    }
    int block = (int) (position / file.blockSize());
    long blockStart = (long) block * file.blockSize();
    ByteBuffer shared = file.block(block);
    ByteBuffer own = shared.duplicate().order(shared.order());
    own.limit((int) Math.min(own.limit(), start + length - blockStart));
    own.position((int) (position - blockStart));
    current = own;
    currentStart = blockStart;
  }

  private long fileOffset(long position, int count) throws IOException {
    refuseClosed();
    if (position < 0 || position > length - count) {
      throw new EOFException(
          "read of " + count + " bytes at " + position + " of " + length + ": " + this);
    }
    return start + position;
  }

  private void refuseClosed() {
    if (closed) {
      throw new AlreadyClosedException("Already closed: " + this);
    }
  }
}
