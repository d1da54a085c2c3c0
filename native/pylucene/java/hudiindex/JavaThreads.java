package hudiindex;

/** The threads of the JVM. {@code java.lang.Thread} itself is not wrapped: see excluded.txt. */
public final class JavaThreads {
  private JavaThreads() {}

  /** How many live threads the caller's group has: those that are attached, Java's own aside. */
  public static int count() {
    return Thread.activeCount();
  }
}
