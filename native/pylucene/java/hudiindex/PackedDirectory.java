package hudiindex;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.Paths;
import java.util.Collection;
import java.util.Set;
import java.util.TreeMap;
import org.apache.lucene.index.CorruptIndexException;
import org.apache.lucene.store.BaseDirectory;
import org.apache.lucene.store.IOContext;
import org.apache.lucene.store.IndexInput;
import org.apache.lucene.store.IndexOutput;
import org.apache.lucene.store.NoLockFactory;

/**
 * A finished index whose files are stored, one after another, in one ordinary file; read-only.
 *
 * <p>The caller gives the location of each member: nothing is parsed from the file. Every block of
 * the file is checked against its CRC-32 before its bytes are first used.
 */
public final class PackedDirectory extends BaseDirectory {
  private record Member(long offset, long length) {}

  private final PackedFile file;
  private final TreeMap<String, Member> members = new TreeMap<>();

  /**
   * @param path the local file
   * @param names the members' names, as Lucene names its files
   * @param offsets each member's offset in the file, in bytes
   * @param lengths each member's length in bytes
   * @param blockSize length in bytes of every block except the last, which may be shorter
   * @param crc32s the CRC-32 (as in java.util.zip and zlib) of each block, as a signed int
   * @param number the number by which {@link Caller#fetch} identifies the file; -1 if it lacks no
   *     block
   * @throws CorruptIndexException if the file has another number of blocks, or a member lies
   *     outside the file
   */
  public PackedDirectory(
      String path,
      String[] names,
      long[] offsets,
      long[] lengths,
      int blockSize,
      int[] crc32s,
      long number)
      throws IOException {
    super(NoLockFactory.INSTANCE); // the index is never written
    if (names.length != offsets.length || names.length != lengths.length) {
      throw new IllegalArgumentException(
          names.length + " names, " + offsets.length + " offsets, " + lengths.length + " lengths");
    }
    file = new PackedFile(Paths.get(path), blockSize, crc32s, number);
    for (int i = 0; i < names.length; i++) {
      if (offsets[i] < 0 || lengths[i] < 0 || offsets[i] > file.length() - lengths[i]) {
        file.close(); // no caller can close it
        throw new CorruptIndexException(
            String.format(
                "%s (%d bytes from %d) lies outside the file's %d bytes",
                names[i], lengths[i], offsets[i], file.length()),
            path);
      }
      members.put(names[i], new Member(offsets[i], lengths[i]));
    }
  }

  @Override
  public String[] listAll() {
    ensureOpen();
    return members.keySet().toArray(new String[0]);
  }

  @Override
  public long fileLength(String name) throws IOException {
    return member(name).length();
  }

  @Override
  public IndexInput openInput(String name, IOContext context) throws IOException {
    Member member = member(name);
    return new PackedInput(
        "PackedInput(" + file.path() + " [" + name + "])", file, member.offset(), member.length());
  }

  @Override
  public Set<String> getPendingDeletions() {
    return Set.of();
  }

  @Override
  public void close() throws IOException {
    isOpen = false;
    file.close();
  }

  private Member member(String name) throws IOException {
    ensureOpen();
    Member member = members.get(name);
    if (member == null) {
      throw new FileNotFoundException(name + " in " + file.path());
    }
    return member;
  }

  private static UnsupportedOperationException readOnly() {
    return new UnsupportedOperationException("a packed index is read-only");
  }

  @Override
  public void deleteFile(String name) {
    throw readOnly();
  }

  @Override
  public IndexOutput createOutput(String name, IOContext context) {
    throw readOnly();
  }

  @Override
  public IndexOutput createTempOutput(String prefix, String suffix, IOContext context) {
    throw readOnly();
  }

  @Override
  public void sync(Collection<String> names) {
    throw readOnly();
  }

  @Override
  public void syncMetaData() {
    throw readOnly();
  }

  @Override
  public void rename(String source, String dest) {
    throw readOnly();
  }
}
