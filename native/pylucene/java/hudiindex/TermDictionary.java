package hudiindex;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.apache.lucene.util.ArrayUtil;
import org.apache.lucene.util.BytesRef;

/**
 * The distinct terms of a field in a segment, numbered in the order of their first occurrence.
 *
 * <p>An open hash table of 64-bit slots: each contains 32 bits of the hash and the term's number,
 * so that a probe that hits another term almost never has to compare bytes. Indexing spends most of
 * its time looking up terms, and most of that time waiting for memory.
 */
final class TermDictionary {
  private static final VarHandle LONGS =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle INTS =
      MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

  private static final int PAGE_BITS = 18;
  private static final int PAGE = 1 << PAGE_BITS;
  private static final int PAGE_MASK = PAGE - 1;
  private static final int LENGTH_BYTES = 2; // before each term; enough for Lucene's longest term

  private byte[][] pages = new byte[4][];
  private int pageCount;
  private int end = PAGE; // in the last page; the first term allocates a page
  private int[] starts = new int[16];
  private long[] table = new long[32];
  private int bits = 5;
  private int size;

  /** Number of terms. */
  int size() {
    return size;
  }

  /** Heap usage in bytes. */
  long bytes() {
    return (long) PAGE * pageCount + 4L * starts.length + 8L * table.length;
  }

  /** The number of the term in {@code bytes}; a new term is added. */
  int add(byte[] bytes, int from, int length) {
    int hash = hash(bytes, from, length);
    int slot = hash >>> 32 - bits;
    int mask = table.length - 1;
    for (long entry; (entry = table[slot]) != 0; slot = slot + 1 & mask) {
      if ((int) (entry >>> 32) == hash) {
        int term = (int) entry - 1;
        if (equals(term, bytes, from, length)) {
          return term;
        }
      }
    }
    int term = append(bytes, from, length);
    table[slot] = (long) hash << 32 | size;
    if (size > table.length / 2) {
      grow();
    }
    return term;
  }

  private static int hash(byte[] bytes, int from, int length) {
    long hash = length * 0x9E3779B97F4A7C15L;
    int at = from;
    int last = from + length - 8;
    if (last < from) {
      hash = mix(hash ^ fewBytes(bytes, from, length));
    } else {
      for (; at < last; at += 8) {
        hash = mix(hash ^ (long) LONGS.get(bytes, at));
      }
      hash = mix(hash ^ (long) LONGS.get(bytes, last)); // may overlap bytes that were hashed before
    }
    return (int) (hash >>> 32);
  }

  private static long mix(long value) {
    long product = value * 0xD6E8FEB86659FD93L;
    return product ^ product >>> 32;
  }

  /** The bytes, fewer than 8, in one long. */
  private static long fewBytes(byte[] bytes, int from, int length) {
    if (length >= 4) {
      long first = (int) INTS.get(bytes, from) & 0xFFFFFFFFL;
      return first << 32 | (int) INTS.get(bytes, from + length - 4) & 0xFFFFFFFFL;
    }
    long value = 0;
    for (int i = 0; i < length; i++) {
      value = value << 8 | bytes[from + i] & 0xFF;
    }
    return value;
  }

  private boolean equals(int term, byte[] bytes, int from, int length) {
    int start = starts[term];
    byte[] page = pages[start >>> PAGE_BITS];
    int at = start & PAGE_MASK;
    return lengthAt(page, at) == length
        && Arrays.equals(
            page, at + LENGTH_BYTES, at + LENGTH_BYTES + length, bytes, from, from + length);
  }

  private static int lengthAt(byte[] page, int at) {
    return page[at] & 0xFF | (page[at + 1] & 0xFF) << 8;
  }

  private int append(byte[] bytes, int from, int length) {
    int needed = LENGTH_BYTES + length;
    if (end + needed > PAGE) {
      if (pageCount == pages.length) {
        pages = ArrayUtil.grow(pages);
      }
      pages[pageCount++] = new byte[PAGE];
      end = 0;
    }
    byte[] page = pages[pageCount - 1];
    page[end] = (byte) length;
    page[end + 1] = (byte) (length >>> 8);
    System.arraycopy(bytes, from, page, end + LENGTH_BYTES, length);
    if (size == starts.length) {
      starts = ArrayUtil.grow(starts);
    }
    starts[size] = (pageCount - 1 << PAGE_BITS) + end;
    end += needed;
    return size++;
  }

  private void grow() {
    long[] larger = new long[table.length * 2];
    bits++;
    int mask = larger.length - 1;
    for (long entry : table) {
      if (entry != 0) {
        int slot = (int) (entry >>> 32) >>> 32 - bits;
        while (larger[slot] != 0) {
          slot = slot + 1 & mask;
        }
        larger[slot] = entry;
      }
    }
    table = larger;
  }

  /** Points {@code target} at the term's bytes, without copying them. */
  void get(int term, BytesRef target) {
    int start = starts[term];
    target.bytes = pages[start >>> PAGE_BITS];
    int at = start & PAGE_MASK;
    target.offset = at + LENGTH_BYTES;
    target.length = lengthAt(target.bytes, at);
  }

  /** The terms' numbers in the order of the terms' bytes. No term can be added afterwards. */
  int[] sorted() {
    table = null; // its memory is needed now
    int[] terms = new int[size];
    for (int term = 0; term < size; term++) {
      terms[term] = term;
    }
    new TermSorter(this, terms).sort();
    return terms;
  }

  int length(int term) {
    int start = starts[term];
    return lengthAt(pages[start >>> PAGE_BITS], start & PAGE_MASK);
  }

  /** Eight bytes of the term from {@code depth} on, first byte highest; zeros after its end. */
  long window(int term, int depth) {
    int start = starts[term];
    byte[] page = pages[start >>> PAGE_BITS];
    int at = start & PAGE_MASK;
    int left = lengthAt(page, at) - depth;
    int from = at + LENGTH_BYTES + depth;
    if (left >= 8) {
      return Long.reverseBytes((long) LONGS.get(page, from));
    }
    long value = 0;
    for (int i = 0; i < left; i++) {
      value |= (page[from + i] & 0xFFL) << 56 - 8 * i;
    }
    return value;
  }

  int compare(int left, int right, int depth) {
    int a = starts[left];
    int b = starts[right];
    byte[] pageA = pages[a >>> PAGE_BITS];
    byte[] pageB = pages[b >>> PAGE_BITS];
    int atA = a & PAGE_MASK;
    int atB = b & PAGE_MASK;
    return Arrays.compareUnsigned(
        pageA,
        Math.min(depth, lengthAt(pageA, atA)) + atA + LENGTH_BYTES,
        atA + LENGTH_BYTES + lengthAt(pageA, atA),
        pageB,
        Math.min(depth, lengthAt(pageB, atB)) + atB + LENGTH_BYTES,
        atB + LENGTH_BYTES + lengthAt(pageB, atB));
  }
}
