package hudiindex;

import java.lang.reflect.InvocationTargetException;
import org.apache.lucene.analysis.Analyzer;

/** Makes Lucene's analysers by the names of their classes, of which Python sees only a few. */
public final class Analyzers {
  private static final String PACKAGE = "org.apache.lucene.analysis.";

  private Analyzers() {}

  /**
   * An analyser with its default settings.
   *
   * @param className a public class of Lucene's, with a constructor without arguments
   * @throws IllegalArgumentException if there is no such analyser
   */
  public static Analyzer named(String className) {
    if (!className.startsWith(PACKAGE)) {
      throw new IllegalArgumentException(className + " is no class of " + PACKAGE + "*");
    }
    try {
      // Not initialised before it is known to be an analyser.
      Class<?> found = Class.forName(className, false, Analyzers.class.getClassLoader());
      return found.asSubclass(Analyzer.class).getConstructor().newInstance();
    } catch (ClassNotFoundException
        | ClassCastException
        | NoSuchMethodException
        | InstantiationException
        | IllegalAccessException
        | InvocationTargetException e) {
      throw new IllegalArgumentException("there is no analyser " + className, e);
    }
  }
}
