package hudiindex.spark;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Optional;
import scala.util.Properties;

/**
 * The lines of Spark's and of Scala's releases, such as 3.5 and 2.12, that a jar is compiled for,
 * or that run.
 */
record Versions(String spark, String scala) {
  /** Written by the build (hatch_build.py). */
  private static final String RESOURCE = "versions.properties";

  /** What this jar was compiled for. */
  static Versions compiled() {
    java.util.Properties written = new java.util.Properties();
    try (InputStream resource = Versions.class.getResourceAsStream(RESOURCE)) {
      written.load(resource);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return new Versions(written.getProperty("spark"), written.getProperty("scala"));
  }

  /** What runs. */
  static Versions running() {
    return new Versions(
        line(org.apache.spark.package$.MODULE$.SPARK_VERSION()),
        line(Properties.versionNumberString()));
  }

  /** Why this jar does not fit what runs, and what to do; empty if it fits. */
  static Optional<String> unfit() {
    Versions compiled = compiled();
    Versions running = running();
    if (compiled.equals(running)) {
      return Optional.empty();
    }
    String remedy =
        compiled.spark().equals(running.spark())
            ? "Use " + running.jar() + ", of the same distribution."
            : "Use a session of Spark " + compiled.spark() + ".";
    return Optional.of(
        "The session is of "
            + running
            + ", and "
            + compiled.jar()
            + " for "
            + compiled
            + ". "
            + remedy);
  }

  private String jar() {
    return "hudi-index-spark" + spark + "_" + scala + ".jar";
  }

  @Override
  public String toString() {
    return "Spark " + spark + " with Scala " + scala;
  }

  private static String line(String version) {
    String[] parts = version.split("\\.");
    return parts[0] + "." + parts[1];
  }
}
