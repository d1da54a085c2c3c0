package hudiindex;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.zip.CRC32;
import org.apache.lucene.index.CorruptIndexException;
import org.apache.lucene.store.AlreadyClosedException;

/**
 * A memory-mapped file whose blocks are checked against their CRC-32 before their first use. If the
 * file is an incomplete copy, a missing block is also recognized by its checksum, and is fetched.
 *
 * <p>Thread-safe: two threads may check the same block at once, with the same result.
 *
 * <p>The checksum is computed from the result of a read call, not from the mapping: if the file has
 * shrunk or the disk fails, a read throws, but the compiled code of CRC32 on a mapping ends the
 * process (SIGBUS). Both see the same pages of the system's page cache. If a block disappears after
 * its check, reading it throws an InternalError.
 *
 * <p>After closing, no further blocks are returned. The mapping itself is released when the garbage
 * collector finds it unused: unmapping it while a thread still reads would kill the process.
 */
final class PackedFile {
  private static final int MAX_MAPPING = 1 << 30;

  private final Path path;
  private final int blockSize;
  private final long length;
  private final int[] crc32s;
  private final int blocksPerMapping;
  private final ByteBuffer[] mappings;
  private final FileChannel channel;
  private final long number;

  /** The blocks that have passed the check; null: not yet checked. */
  private final AtomicReferenceArray<ByteBuffer> intact;

  private volatile boolean closed;

  /**
   * @param number the number by which {@link Caller#fetch} identifies the file; -1 if it lacks no
   *     block
   */
  PackedFile(Path path, int blockSize, int[] crc32s, long number) throws IOException {
    if (blockSize < 1 || blockSize > MAX_MAPPING) {
      throw new IllegalArgumentException("block size " + blockSize);
    }
    this.path = path;
    this.blockSize = blockSize;
    this.crc32s = crc32s.clone();
    this.number = number;
    blocksPerMapping = MAX_MAPPING / blockSize;
    intact = new AtomicReferenceArray<>(crc32s.length);
    channel = FileChannel.open(path, StandardOpenOption.READ);
    try {
      length = channel.size();
      if ((length + blockSize - 1) / blockSize != crc32s.length) {
        throw new CorruptIndexException(
            length + " bytes are not " + crc32s.length + " blocks of " + blockSize + " bytes",
            path.toString());
      }
      long mappingSize = (long) blocksPerMapping * blockSize;
      mappings = new ByteBuffer[(int) ((length + mappingSize - 1) / mappingSize)];
      for (int i = 0; i < mappings.length; i++) {
        long at = i * mappingSize;
        mappings[i] =
            channel.map(FileChannel.MapMode.READ_ONLY, at, Math.min(mappingSize, length - at));
      }
    } catch (IOException | RuntimeException e) {
      channel.close();
      throw e;
    }
  }

  Path path() {
    return path;
  }

  long length() {
    return length;
  }

  int blockSize() {
    return blockSize;
  }

  /**
   * The bytes of an intact block, little-endian as Lucene 9 writes them. All threads share the
   * buffer: read it by absolute index or duplicate it.
   *
   * @throws CorruptIndexException if its checksum differs, it cannot be fetched, or the file has
   *     become too short
   * @throws AlreadyClosedException if the file was closed
   * @throws IOException if the file cannot be read
   */
  ByteBuffer block(int at) throws IOException {
    if (closed) {
      throw new AlreadyClosedException("Already closed: " + path);
    }
    ByteBuffer block = intact.get(at);
    if (block == null) {
      block = check(at);
      intact.set(at, block);
    }
    return block;
  }

  void close() throws IOException {
    closed = true;
    channel.close();
  }

  private ByteBuffer check(int block) throws IOException {
    long at = (long) block * blockSize;
    int size = (int) Math.min(blockSize, length - at);
    int found = crc32(at, size);
    if (found != crc32s[block] && number >= 0) {
      String reason = Caller.known().fetch(number, block);
      if (reason != null) {
        throw new CorruptIndexException(reason, path.toString());
      }
      found = crc32(at, size);
    }
    if (found != crc32s[block]) {
      throw new CorruptIndexException(
          String.format(
              "block %d (bytes %d to %d) has checksum %08x, expected %08x",
              block, at, at + size, found, crc32s[block]),
          path.toString());
    }
    return mappings[block / blocksPerMapping]
        .slice(block % blocksPerMapping * blockSize, size)
        .order(ByteOrder.LITTLE_ENDIAN);
  }

  private int crc32(long at, int size) throws IOException {
    CRC32 crc32 = new CRC32();
    crc32.update(read(at, size));
    return (int) crc32.getValue();
  }

  private byte[] read(long at, int size) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(size);
    try {
      while (bytes.hasRemaining()) {
        if (channel.read(bytes, at + bytes.position()) < 0) {
          throw new CorruptIndexException("ends before byte " + (at + size), path.toString());
        }
      }
    } catch (ClosedChannelException e) {
      throw new AlreadyClosedException("Already closed: " + path, e);
    }
    return bytes.array();
  }
}
