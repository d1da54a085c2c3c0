package hudiindex;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A LIKE pattern, matched against UTF-8 bytes: texts, {@code %} for any number of characters,
 * {@code _} for one. Matching takes time at most proportional to the product of both lengths.
 */
final class LikePattern {
  /** The part between two {@code %}: texts with {@code _} (null) between them. */
  private static final class Chunk {
    final byte[][] items;

    /**
     * For each byte, how far a search may advance if it is aligned with the first text's last byte.
     */
    final int[] steps = new int[256];

    Chunk(List<byte[]> items) {
      this.items = items.toArray(new byte[0][]);
      byte[] first = items.isEmpty() ? null : items.get(0);
      if (first != null) {
        Arrays.fill(steps, first.length);
        for (int i = 0; i < first.length - 1; i++) {
          steps[first[i] & 0xFF] = first.length - 1 - i;
        }
      }
    }

    /** Where the chunk ends if it begins at {@code at}; -1 if it does not begin there. */
    int endFrom(byte[] bytes, int at, int to) {
      for (byte[] item : items) {
        if (item == null) {
          at = at < to ? characterEnd(bytes, at, to) : to + 1;
        } else if (to - at >= item.length
            && Arrays.equals(bytes, at, at + item.length, item, 0, item.length)) {
          at += item.length;
        } else {
          return -1;
        }
        if (at > to) {
          return -1;
        }
      }
      return at;
    }

    /** Where the chunk begins if it ends at {@code at}; -1 if it does not end there. */
    int startFrom(byte[] bytes, int from, int at) {
      for (int i = items.length - 1; i >= 0; i--) {
        byte[] item = items[i];
        if (item == null) {
          at = at > from ? characterStart(bytes, from, at) : from - 1;
        } else if (at - from >= item.length
            && Arrays.equals(bytes, at - item.length, at, item, 0, item.length)) {
          at -= item.length;
        } else {
          return -1;
        }
        if (at < from) {
          return -1;
        }
      }
      return at;
    }

    /** Where the chunk's first occurrence ends; -1 if there is none. */
    int find(byte[] bytes, int from, int to) {
      byte[] first = items[0];
      if (first == null) { // begins with any single character
        for (int at = from; at < to; at = characterEnd(bytes, at, to)) {
          int end = endFrom(bytes, at, to);
          if (end >= 0) {
            return end;
          }
        }
        return -1;
      }
      int last = first.length - 1;
      byte lastByte = first[last];
      for (int at = from; at <= to - first.length; ) {
        byte under = bytes[at + last];
        if (under == lastByte) {
          int end = endFrom(bytes, at, to);
          if (end >= 0) {
            return end;
          }
        }
        at += steps[under & 0xFF];
      }
      return -1;
    }
  }

  private final Chunk[] chunks;

  /** The prefix of every match; may be empty. */
  final byte[] prefix;

  /**
   * @param parts the pattern's parts in order: {@code %}, {@code _}, or {@code =} and a text
   */
  LikePattern(String[] parts) {
    List<Chunk> all = new ArrayList<>();
    List<byte[]> items = new ArrayList<>();
    for (String part : parts) {
      switch (part.charAt(0)) {
        case '%':
          all.add(new Chunk(items));
          items = new ArrayList<>();
          break;
        case '_':
          items.add(null);
          break;
        default:
          items.add(part.substring(1).getBytes(StandardCharsets.UTF_8));
      }
    }
    all.add(new Chunk(items));
    chunks = all.toArray(new Chunk[0]);
    byte[][] first = chunks[0].items;
    prefix = first.length > 0 && first[0] != null ? first[0] : new byte[0];
  }

  boolean matches(byte[] bytes, int from, int to) {
    int at = chunks[0].endFrom(bytes, from, to);
    int last = chunks.length - 1;
    if (at < 0 || last == 0) {
      return at == to;
    }
    int end = chunks[last].startFrom(bytes, at, to);
    if (end < 0) {
      return false;
    }
    for (int i = 1; i < last; i++) {
      if (chunks[i].items.length > 0) {
        at = chunks[i].find(bytes, at, end);
        if (at < 0) {
          return false;
        }
      }
    }
    return true;
  }

  private static int characterEnd(byte[] bytes, int at, int to) {
    at++;
    while (at < to && (bytes[at] & 0xC0) == 0x80) {
      at++;
    }
    return at;
  }

  private static int characterStart(byte[] bytes, int from, int at) {
    at--;
    while (at > from && (bytes[at] & 0xC0) == 0x80) {
      at--;
    }
    return at;
  }
}
