package hudiindex.spark;

import hudiindex.spark.catalyst.IndexRule;
import hudiindex.spark.catalyst.IndexStrategy;
import hudiindex.spark.catalyst.NoIndexHints;
import hudiindex.spark.catalyst.RunningAnalyzer;
import hudiindex.spark.fulltext.Binding;
import hudiindex.spark.fulltext.FullTextFunctions;
import hudiindex.spark.source.Decisions;
import hudiindex.spark.source.FullText;
import hudiindex.spark.source.PythonSource;
import hudiindex.spark.source.Source;
import hudiindex.spark.source.Statements;
import hudiindex.spark.statements.IndexParser;
import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.function.BiFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import py4j.Py4JPythonClient;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/**
 * Makes the queries of Spark sessions ask an index: named in {@code spark.sql.extensions}, or put
 * into sessions that already run. Sessions that start with it also take index statements.
 */
public final class IndexExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  /** The source of decisions; null until `enable`. */
  private static volatile Decisions decisions;

  /** Who knows full-text calls; null until `enable`. */
  private static volatile FullText fullText;

  /** Who runs index statements; null until `enable`. */
  private static volatile Statements statements;

  /** The registries that hold rule and parser; each Spark context's sessions share one. */
  private static final Set<SparkSessionExtensions> EXTENDED =
      Collections.newSetFromMap(new WeakHashMap<>());

  @Override
  public BoxedUnit apply(SparkSessionExtensions registry) {
    synchronized (EXTENDED) {
      if (EXTENDED.add(registry)) {
        // A rule and a strategy are made anew for each query: they keep nothing.
        registry.injectPreCBORule(function(session -> new IndexRule(session, decisions)));
        registry.injectPlannerStrategy(function(session -> new IndexStrategy()));
        registry.injectResolutionRule(function(NoIndexHints::new));
        registry.injectResolutionRule(function(session -> binding()));
        FullTextFunctions.inject(registry);
        // A session makes its parser once, at its start: only sessions to come have this one.
        registry.injectParser(parser());
      }
    }
    return BoxedUnit.UNIT;
  }

  /**
   * Makes the queries of a running session, and of those that share its registry, ask Python. Spark
   * looks into the registry at each query. Calling it again only replaces the source.
   *
   * @param python answers (question, request) as {@link PythonSource} describes
   * @param client calls Python
   */
  public void enable(
      SparkSession session, BiFunction<String, Object, Object> python, Py4JPythonClient client) {
    enable(session, new PythonSource(python, client));
  }

  /** The same for any source. */
  public void enable(SparkSession session, Source source) {
    apply(session.extensions());
    RunningAnalyzer.hasAdded(session, new NoIndexHints(session));
    fullText = new FullText(source);
    if (RunningAnalyzer.hasAdded(session, binding())) {
      FullTextFunctions.register(session);
    }
    decisions = new Decisions(source);
    statements = new Statements(source);
  }

  /** The latest queries of the calling thread, as {@link Uses} writes them. */
  public String lastQueries() {
    return Uses.ofThisThread();
  }

  /** Runs a statement on Hudi's own indexes, which its session may take for one of the service. */
  public Dataset<Row> passOn(SparkSession session, String text) {
    return IndexParser.passedOn(session, text);
  }

  /** Takes the full-text functions from a session. */
  public void removeFunctions(SparkSession session) {
    FullTextFunctions.remove(session);
  }

  private static Binding binding() {
    return new Binding(() -> fullText);
  }

  private static AbstractFunction2<SparkSession, ParserInterface, ParserInterface> parser() {
    return new AbstractFunction2<>() {
      @Override
      public ParserInterface apply(SparkSession session, ParserInterface before) {
        return new IndexParser(session, before, () -> statements);
      }
    };
  }

  private static <A, B> AbstractFunction1<A, B> function(java.util.function.Function<A, B> made) {
    return new AbstractFunction1<>() {
      @Override
      public B apply(A argument) {
        return made.apply(argument);
      }
    };
  }
}
