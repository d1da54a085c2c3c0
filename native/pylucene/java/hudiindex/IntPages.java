package hudiindex;

import org.apache.lucene.util.ArrayUtil;

/** A growing list of ints in pages: it never copies its content and takes little extra memory. */
final class IntPages {
  private static final int BITS = 14;
  private static final int PAGE = 1 << BITS;
  private static final int MASK = PAGE - 1;

  private int[][] pages = new int[8][];
  private int pageCount;
  private int size;

  void add(int value) {
    int page = size >>> BITS;
    if (page == pageCount) {
      if (pageCount == pages.length) {
        pages = ArrayUtil.grow(pages);
      }
      pages[pageCount++] = new int[PAGE];
    }
    pages[page][size++ & MASK] = value;
  }

  int get(int index) {
    return pages[index >>> BITS][index & MASK];
  }

  void set(int index, int value) {
    pages[index >>> BITS][index & MASK] = value;
  }

  int size() {
    return size;
  }

  long bytes() {
    return 4L * PAGE * pageCount;
  }
}
