package hudiindex;

import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.SmallFloat;

/**
 * The terms of one field in the rows of a segment, first in row order, then in term order.
 *
 * <p>An occurrence takes four bytes (the term's number) and a row another four (its number of
 * terms), so that segments can be large: a term that several segments share is written in each.
 */
final class Occurrences {
  private static final int BYTE_POSITIONS = 256;

  /** Occurrences that are sorted at a time; those of one term are always sorted together. */
  private static final int WINDOW = 1 << 23;

  final TermDictionary dictionary = new TermDictionary();
  private final IntPages terms = new IntPages();
  private final IntPages rowCounts = new IntPages();

  /** Positions; null as long as every row has the positions 0, 1, 2, …. */
  private IntPages positions;

  private int highestPosition;
  private int filledRows;

  /** Adds a term to the current row; the end of the row determines its position. */
  void add(byte[] bytes, int from, int length) {
    terms.add(dictionary.add(bytes, from, length));
  }

  /**
   * Adds a term with its position to the current row.
   *
   * @param index number of terms that the row has so far
   */
  void add(BytesRef term, int index, int position) {
    if (positions == null && position != index) {
      positions = usualPositions(index);
    }
    terms.add(dictionary.add(term.bytes, term.offset, term.length));
    if (positions != null) {
      positions.add(position);
    }
    highestPosition = Math.max(highestPosition, position);
  }

  /** Ends a row that has {@code count} terms at the positions 0, 1, 2, …. */
  void endUsualRow(int row, int count) {
    if (positions != null) {
      for (int position = 0; position < count; position++) {
        positions.add(position);
      }
    }
    highestPosition = Math.max(highestPosition, count - 1);
    endRow(row, count);
  }

  /**
   * Ends a row that has {@code count} terms, whose positions were given or which have none. Skipped
   * rows have no terms.
   */
  void endRow(int row, int count) {
    while (rowCounts.size() < row) {
      rowCounts.add(0);
    }
    rowCounts.add(count);
    if (count > 0) {
      filledRows++;
    }
  }

  private IntPages usualPositions(int inThisRow) {
    IntPages usual = new IntPages();
    for (int row = 0; row < rowCounts.size(); row++) {
      for (int position = 0; position < rowCounts.get(row); position++) {
        usual.add(position);
      }
    }
    for (int position = 0; position < inThisRow; position++) {
      usual.add(position);
    }
    return usual;
  }

  boolean isEmpty() {
    return terms.size() == 0;
  }

  int count() {
    return terms.size();
  }

  /** Number of rows that have a term. */
  int filledRows() {
    return filledRows;
  }

  /** Each row's number of terms in Lucene's one-byte encoding, exact up to 40. */
  byte[] lengths(int rows) {
    byte[] lengths = new byte[rows];
    for (int row = 0; row < rowCounts.size(); row++) {
      lengths[row] = SmallFloat.intToByte4(rowCounts.get(row));
    }
    return lengths;
  }

  /** Current heap usage in bytes. */
  long bytes() {
    return dictionary.bytes()
        + terms.bytes()
        + rowCounts.bytes()
        + (positions == null ? 0 : positions.bytes());
  }

  /** Additional heap in bytes that {@link #sorted} takes. */
  long bytesToSort(boolean withPositions) {
    long perTerm = withPositions ? (highestPosition < BYTE_POSITIONS ? 5L : 8L) : 4L;
    return perTerm * Math.min(terms.size(), WINDOW) + 20L * dictionary.size();
  }

  /** All occurrences, ordered by term and row; nothing can be added afterwards. */
  Sorted sorted(boolean withPositions) {
    int[] order = dictionary.sorted();
    int[] ranks = new int[order.length];
    for (int rank = 0; rank < order.length; rank++) {
      ranks[order[rank]] = rank;
    }
    int[] starts = new int[order.length + 1];
    for (int i = 0; i < terms.size(); i++) {
      int rank = ranks[terms.get(i)];
      terms.set(i, rank);
      starts[rank + 1]++;
    }
    for (int rank = 0; rank < order.length; rank++) {
      starts[rank + 1] += starts[rank];
    }
    return new Sorted(order, starts, withPositions);
  }

  /**
   * Occurrences ordered by term; those of one term ordered by row and position. Terms must be read
   * in order: only a window of them is sorted at a time.
   */
  final class Sorted {
    private final int[] order;
    private final int[] starts; // by rank; the total after the last one
    private final boolean withPositions;
    private final int[] rows;
    private byte[] near = {}; // positions, if all of them fit in bytes
    private int[] far = {};
    private int first; // rank of the window's first term
    private int end;

    Sorted(int[] order, int[] starts, boolean withPositions) {
      this.order = order;
      this.starts = starts;
      this.withPositions = withPositions;
      int largest = 0;
      for (int rank = 0; rank < order.length; rank = window(rank)) {
        largest = Math.max(largest, starts[window(rank)] - starts[rank]);
      }
      rows = new int[largest];
      if (withPositions && highestPosition < BYTE_POSITIONS) {
        near = new byte[largest];
      } else if (withPositions) {
        far = new int[largest];
      }
    }

    /** The end of the window that begins with the term of this rank. */
    private int window(int from) {
      int to = from + 1;
      while (to < order.length && starts[to + 1] - starts[from] <= WINDOW) {
        to++;
      }
      return to;
    }

    /** Sorts the window that begins with the term of this rank. */
    private void sortFrom(int rank) {
      first = rank;
      end = window(rank);
      int[] next = new int[end - first];
      for (int i = 0; i < next.length; i++) {
        next[i] = starts[first + i] - starts[first];
      }
      int occurrence = 0;
      for (int row = 0; row < rowCounts.size(); row++) {
        int count = rowCounts.get(row);
        for (int i = 0; i < count; i++, occurrence++) {
          int term = terms.get(occurrence);
          if (term >= first && term < end) {
            int at = next[term - first]++;
            rows[at] = row;
            if (withPositions) {
              setPosition(at, positions == null ? i : positions.get(occurrence));
            }
          }
        }
      }
    }

    private void setPosition(int at, int position) {
      if (highestPosition < BYTE_POSITIONS) {
        near[at] = (byte) position;
      } else {
        far[at] = position;
      }
    }

    int terms() {
      return order.length;
    }

    /** Points {@code target} at the bytes of the term of this rank. */
    void term(int rank, BytesRef target) {
      dictionary.get(order[rank], target);
    }

    /** The start of the occurrences of the term of this rank; sorts them first if necessary. */
    int start(int rank) {
      if (rank >= end) {
        sortFrom(rank);
      }
      return starts[rank] - starts[first];
    }

    int end(int rank) {
      return starts[rank + 1] - starts[first];
    }

    int row(int at) {
      return rows[at];
    }

    int position(int at) {
      return highestPosition < BYTE_POSITIONS ? near[at] & 0xFF : far[at];
    }
  }
}
