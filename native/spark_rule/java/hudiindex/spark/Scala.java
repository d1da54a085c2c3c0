package hudiindex.spark;

import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import scala.Function0;
import scala.PartialFunction;
import scala.Tuple2;
import scala.collection.JavaConverters;
import scala.collection.Seq;
import scala.collection.mutable.Builder;
import scala.runtime.AbstractFunction0;

/**
 * Scala's collections as Java's, and the other way round, in both versions of Scala.
 *
 * <p>All sources import {@code scala.collection.Seq} and {@code IndexedSeq}, which Spark's methods
 * have in Scala 2.12. In Scala 2.13 they have the immutable ones: the build (hatch_build.py)
 * replaces these imports.
 */
@SuppressWarnings("deprecation") // what Scala 2.13 has instead of JavaConverters, 2.12 lacks
public final class Scala {
  private Scala() {}

  /** An immutable sequence of the same elements. */
  public static <T> Seq<T> seq(List<? extends T> elements) {
    return JavaConverters.<T>asScalaBuffer(List.copyOf(elements)).toList();
  }

  /** An immutable set of the same elements. */
  public static <T> scala.collection.immutable.Set<T> set(Set<T> elements) {
    return JavaConverters.asScalaSet(elements).toSet();
  }

  /** An immutable map of the same entries. */
  public static <K, V> scala.collection.immutable.Map<K, V> immutable(Map<K, V> entries) {
    Builder<Tuple2<K, V>, scala.collection.immutable.Map<K, V>> builder =
        scala.collection.immutable.Map$.MODULE$.newBuilder();
    entries.forEach((key, value) -> builder.$plus$eq(new Tuple2<>(key, value)));
    return builder.result();
  }

  /** A view on the elements. */
  public static <T> List<T> list(Seq<T> elements) {
    return JavaConverters.seqAsJavaList(elements);
  }

  /** A view on the elements. */
  public static <T> Set<T> set(scala.collection.Set<T> elements) {
    return JavaConverters.setAsJavaSet(elements);
  }

  /** A view on the entries. */
  public static <K, V> Map<K, V> map(scala.collection.Map<K, V> entries) {
    return JavaConverters.mapAsJavaMap(entries);
  }

  /** A view on the elements. */
  public static <T> Iterator<T> iterator(scala.collection.Iterator<T> elements) {
    return JavaConverters.asJavaIterator(elements);
  }

  /** A call without parameters. */
  public static <T> Function0<T> call(Supplier<T> call) {
    return new AbstractFunction0<>() {
      @Override
      public T apply() {
        return call.get();
      }
    };
  }

  /** A function that is defined for the keys, and returns their values. */
  public static <K, V> PartialFunction<K, V> function(Map<K, V> entries) {
    return JavaConverters.mapAsScalaMap(entries);
  }
}
