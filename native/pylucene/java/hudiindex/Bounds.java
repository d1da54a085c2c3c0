package hudiindex;

import java.util.List;

/**
 * Lower and upper bound of a number of rows. Bounds for several sets of rows hold however the sets
 * depend on each other (Fréchet's bounds).
 */
record Bounds(long least, long most) {
  static final Bounds NONE = new Bounds(0, 0);

  static Bounds exactly(long rows) {
    return new Bounds(rows, rows);
  }

  static Bounds upTo(long rows) {
    return new Bounds(0, rows);
  }

  /** Bounds of the union of two disjoint sets. */
  Bounds plus(Bounds other) {
    return new Bounds(least + other.least, most + other.most);
  }

  /** Bounds of the intersection of the sets, among {@code of} rows. */
  static Bounds allOf(List<Bounds> sets, long of) {
    long least = of;
    long most = of;
    for (Bounds each : sets) {
      least += each.least - of;
      most = Math.min(most, each.most);
    }
    return new Bounds(Math.max(0, least), most);
  }

  /** Bounds of the union of the sets, among {@code of} rows. */
  static Bounds anyOf(List<Bounds> sets, long of) {
    long least = 0;
    long most = 0;
    for (Bounds each : sets) {
      least = Math.max(least, each.least);
      most += each.most;
    }
    return new Bounds(least, Math.min(of, most));
  }

  /** Bounds of the union of disjoint sets, among {@code of} rows. */
  static Bounds oneOf(List<Bounds> sets, long of) {
    Bounds sum = NONE;
    for (Bounds each : sets) {
      sum = sum.plus(each);
    }
    return new Bounds(sum.least, Math.min(of, sum.most));
  }
}
