package hudiindex.spark;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import scala.Function0;
import scala.PartialFunction;
import scala.collection.JavaConverters;
import scala.collection.Seq;
import scala.runtime.AbstractFunction0;

/** Scala's collections as Java's, and the other way round. */
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

  /** A view on the elements. */
  public static <T> List<T> list(Seq<T> elements) {
    return JavaConverters.seqAsJavaList(elements);
  }

  /** A view on the entries. */
  public static <K, V> Map<K, V> map(scala.collection.Map<K, V> entries) {
    return JavaConverters.mapAsJavaMap(entries);
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
