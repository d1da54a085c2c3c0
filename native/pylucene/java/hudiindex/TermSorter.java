package hudiindex;

import org.apache.lucene.util.ArrayUtil;
import org.apache.lucene.util.MSBRadixSorter;

/**
 * Sorts the numbers of terms by the terms' bytes, eight bytes at a time: the windows of a range are
 * adjacent in memory while they are sorted, whereas the terms are scattered over the heap.
 */
final class TermSorter {
  private static final int FEW = 24;
  private static final int RANGE = 3;

  private final TermDictionary dictionary;
  private final int[] terms;
  private final long[] windows;
  private int[] ranges = {}; // begin, end and depth of each range still to be sorted
  private int waiting;

  TermSorter(TermDictionary dictionary, int[] terms) {
    this.dictionary = dictionary;
    this.terms = terms;
    windows = new long[terms.length];
  }

  void sort() {
    put(0, terms.length, 0);
    while (waiting > 0) {
      waiting -= RANGE;
      sort(ranges[waiting], ranges[waiting + 1], ranges[waiting + 2]);
    }
  }

  /** Queues a range: recursion would go thousands of levels deep for long common prefixes. */
  private void put(int from, int to, int depth) {
    ranges = ArrayUtil.grow(ranges, waiting + RANGE);
    ranges[waiting++] = from;
    ranges[waiting++] = to;
    ranges[waiting++] = depth;
  }

  /** Sorts a range of terms that share their first {@code depth} bytes, except for queued parts. */
  private void sort(int from, int to, int depth) {
    if (to - from <= FEW) {
      insertionSort(from, to, depth);
      return;
    }
    for (int i = from; i < to; i++) {
      windows[i] = dictionary.window(terms[i], depth);
    }
    new WindowSorter().sort(from, to);
    for (int start = from; start < to; ) {
      int end = start + 1;
      while (end < to && windows[end] == windows[start]) {
        end++;
      }
      if (end - start > 1) {
        sortEqualWindows(start, end, depth + Long.BYTES);
      }
      start = end;
    }
  }

  /**
   * Terms that end within the window differ from each other only in trailing zeros, and sort before
   * terms that continue; there are at most as many as a window has bytes.
   */
  private void sortEqualWindows(int from, int to, int depth) {
    int ended = from;
    for (int i = from; i < to; i++) {
      if (dictionary.length(terms[i]) <= depth) {
        int term = terms[i];
        terms[i] = terms[ended];
        terms[ended++] = term;
      }
    }
    insertionSort(from, ended, 0);
    put(ended, to, depth);
  }

  private void insertionSort(int from, int to, int depth) {
    for (int i = from + 1; i < to; i++) {
      int term = terms[i];
      int at = i;
      while (at > from && dictionary.compare(terms[at - 1], term, depth) > 0) {
        terms[at] = terms[--at];
      }
      terms[at] = term;
    }
  }

  private final class WindowSorter extends MSBRadixSorter {
    WindowSorter() {
      super(Long.BYTES);
    }

    @Override
    protected int byteAt(int index, int position) {
      return (int) (windows[index] >>> 56 - 8 * position) & 0xFF;
    }

    @Override
    protected void swap(int i, int j) {
      long window = windows[i];
      windows[i] = windows[j];
      windows[j] = window;
      int term = terms[i];
      terms[i] = terms[j];
      terms[j] = term;
    }
  }
}
