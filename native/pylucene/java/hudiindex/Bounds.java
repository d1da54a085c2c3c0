package hudiindex;

import java.util.List;

/**
 * How many rows there are: never fewer than the one number, never more than the other. What follows
 * for several sets of rows holds however these hang together (Fréchet's bounds).
 */
record Bounds(long least, long most) {
  static final Bounds NONE = new Bounds(0, 0);

  static Bounds exactly(long rows) {
    return new Bounds(rows, rows);
  }

  static Bounds upTo(long rows) {
    return new Bounds(0, rows);
  }

  /** Of rows that are in none of both. */
  Bounds plus(Bounds other) {
    return new Bounds(least + other.least, most + other.most);
  }

  /** Of rows in all of some sets among {@code of} rows. */
  static Bounds allOf(List<Bounds> sets, long of) {
    long least = of;
    long most = of;
    for (Bounds each : sets) {
      least += each.least - of;
      most = Math.min(most, each.most);
    }
    return new Bounds(Math.max(0, least), most);
  }

  /** Of rows in any of some sets among {@code of} rows. */
  static Bounds anyOf(List<Bounds> sets, long of) {
    long least = 0;
    long most = 0;
    for (Bounds each : sets) {
      least = Math.max(least, each.least);
      most += each.most;
    }
    return new Bounds(least, Math.min(of, most));
  }

  /** Of rows in one of some sets that have none in common, among {@code of} rows. */
  static Bounds oneOf(List<Bounds> sets, long of) {
    Bounds sum = NONE;
    for (Bounds each : sets) {
      sum = sum.plus(each);
    }
    return new Bounds(sum.least, Math.min(of, sum.most));
  }
}
