package hudiindex;

import java.lang.reflect.InvocationTargetException;
import org.apache.lucene.analysis.Analyzer;

/** Creates Lucene's analyzers by class name; Python sees only a few of these classes. */
public final class Analyzers {
  private static final String PACKAGE = "org.apache.lucene.analysis.";

  private Analyzers() {}

  /**
   * An analyzer with its default settings.
   *
   * @param className a public class of Lucene with a constructor without arguments
   * @throws IllegalArgumentException if there is no such analyzer
   */
  public static Analyzer named(String className) {
    if (!className.startsWith(PACKAGE)) {
      throw new IllegalArgumentException(className + " is not a class of " + PACKAGE + "*");
    }
    try {
      // Not initialized until it is known to be an analyzer.
      Class<?> found = Class.forName(className, false, Analyzers.class.getClassLoader());
      return found.asSubclass(Analyzer.class).getConstructor().newInstance();
    } catch (ClassNotFoundException
        | ClassCastException
        | NoSuchMethodException
        | InstantiationException
        | IllegalAccessException
        | InvocationTargetException e) {
      throw new IllegalArgumentException("there is no analyzer " + className, e);
    }
  }
}
