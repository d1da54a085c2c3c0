package hudiindex;

import java.io.IOException;
import org.apache.lucene.store.ByteBuffersDataOutput;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.apache.lucene.store.ByteBuffersIndexInput;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.IOContext;
import org.apache.lucene.store.IndexInput;
import org.apache.lucene.store.SingleInstanceLockFactory;

/** Indexes whose files stay on the heap until they are copied out. */
public final class MemoryFiles {
  private static final int AT_ONCE = 1 << 16;

  private MemoryFiles() {}

  /**
   * A new, empty directory on the heap. By default, Lucene formats a description of each closed
   * file's buffers, which takes as long as writing a small file.
   */
  public static Directory directory() {
    return new ByteBuffersDirectory(
        new SingleInstanceLockFactory(),
        ByteBuffersDataOutput::new,
        (name, output) -> new ByteBuffersIndexInput(output.toDataInput(), name));
  }

  /** Copies all bytes of a file to an address, where there must be room for them. */
  public static void copy(Directory directory, String name, long address) throws IOException {
    try (IndexInput input = directory.openInput(name, IOContext.READONCE)) {
      byte[] bytes = new byte[(int) Math.min(AT_ONCE, input.length())];
      for (long done = 0; done < input.length(); ) {
        int count = (int) Math.min(bytes.length, input.length() - done);
        input.readBytes(bytes, 0, count);
        NativeMemory.write(bytes, count, address + done);
        done += count;
      }
    }
  }
}
