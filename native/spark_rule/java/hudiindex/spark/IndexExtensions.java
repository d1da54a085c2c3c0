package hudiindex.spark;

import hudiindex.spark.catalyst.BegunQueries;
import hudiindex.spark.catalyst.IndexRule;
import hudiindex.spark.catalyst.IndexStrategy;
import hudiindex.spark.catalyst.NoIndexHints;
import hudiindex.spark.catalyst.RunningAnalyzer;
import hudiindex.spark.fulltext.Binding;
import hudiindex.spark.fulltext.FullTextFunctions;
import hudiindex.spark.line.SparkLine;
import hudiindex.spark.source.Decisions;
import hudiindex.spark.source.FullText;
import hudiindex.spark.source.HttpSource;
import hudiindex.spark.source.PythonSource;
import hudiindex.spark.source.Source;
import hudiindex.spark.source.Statements;
import hudiindex.spark.statements.IndexParser;
import java.util.Collections;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import py4j.Py4JPythonClient;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/**
 * Makes the queries of Spark sessions ask an index: named in {@code spark.sql.extensions}, or put
 * into sessions that already run. Sessions that start with it also take index statements.
 */
public final class IndexExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  private static final Logger LOG = LoggerFactory.getLogger(IndexExtensions.class);

  /** Who answers the sessions for which `enable` was called. */
  private static final Map<SparkSession, Answers> BY_SESSION =
      Collections.synchronizedMap(new WeakHashMap<>());

  /**
   * Who answers the others of a Spark context: whoever was enabled last in it; without `enable`,
   * the daemon that its settings name, if they do.
   */
  private static final Map<SparkContext, Optional<Answers>> BY_CONTEXT =
      Collections.synchronizedMap(new WeakHashMap<>());

  /** The registries that hold rule and parser; each Spark context's sessions share one. */
  private static final Set<SparkSessionExtensions> EXTENDED =
      Collections.newSetFromMap(new WeakHashMap<>());

  @Override
  public BoxedUnit apply(SparkSessionExtensions registry) {
    Optional<String> unfit = Versions.unfit();
    if (unfit.isPresent()) {
      // Calls of Spark's methods would fail, each at its first use.
      LOG.warn("SPARK_UNSUPPORTED: Spark scans: {}", unfit.get());
      return BoxedUnit.UNIT;
    }
    synchronized (EXTENDED) {
      if (EXTENDED.add(registry)) {
        // A rule and a strategy are made anew for each query: they keep nothing.
        registry.injectPreCBORule(
            function(session -> new IndexRule(session, from(session, Answers::decisions))));
        registry.injectPlannerStrategy(function(session -> new IndexStrategy()));
        registry.injectResolutionRule(function(session -> new BegunQueries()));
        registry.injectResolutionRule(function(NoIndexHints::new));
        registry.injectResolutionRule(function(IndexExtensions::binding));
        FullTextFunctions.inject(registry);
        // A session makes its parser once, at its start: only sessions to come have this one.
        registry.injectParser(parser());
      }
    }
    return BoxedUnit.UNIT;
  }

  /**
   * Makes the queries of a running session ask Python, and those of sessions that share its
   * registry and have no source of their own. Spark looks into the registry at each query. Calling
   * it again only replaces the source.
   *
   * @param python answers (question, request) as {@link PythonSource} describes
   * @param client calls Python
   */
  public void enable(
      SparkSession session, BiFunction<String, Object, Object> python, Py4JPythonClient client) {
    enable(session, new PythonSource(python, client));
  }

  /** Why the jar cannot be used in this JVM, and what to do; null if it can. */
  public String unfit() {
    return Versions.unfit().orElse(null);
  }

  /** The same for any source. */
  public void enable(SparkSession session, Source source) {
    apply(SparkLine.extensions(session));
    RunningAnalyzer.hasAdded(session, new BegunQueries());
    RunningAnalyzer.hasAdded(session, new NoIndexHints(session));
    Answers answers = Answers.of(source);
    BY_SESSION.put(session, answers);
    if (BY_CONTEXT.put(session.sparkContext(), Optional.of(answers)) == null) {
      forgetAtEnd(session.sparkContext());
    }
    if (RunningAnalyzer.hasAdded(session, binding(session))) {
      FullTextFunctions.register(session);
    }
  }

  /** Forgets what was decided for a session: an index may have been built, or dropped. */
  public void forget(SparkSession session) {
    Decisions decisions = from(session, Answers::decisions);
    if (decisions != null) {
      decisions.forget();
    }
  }

  /** The latest queries of the calling thread, as {@link Uses} writes them. */
  public String lastQueries() {
    return Uses.writtenOfThisThread();
  }

  /** How a query's Hudi relations are read. Plans the query, unless it has been planned. */
  public PlannedUses uses(Dataset<Row> query) {
    return PlannedUses.of(query.queryExecution());
  }

  /**
   * Whether a text is no query, or one that writes. Throws Spark's error if it cannot be parsed.
   */
  public boolean changesSomething(SparkSession session, String text) throws ParseException {
    return ExplainedQuery.changesSomething(session, text);
  }

  /** Runs a statement on Hudi's own indexes, which its session may take for one of the service. */
  public Dataset<Row> passOn(SparkSession session, String text) {
    return IndexParser.passedOn(session, text);
  }

  private static <T> T from(SparkSession session, Function<Answers, T> part) {
    SparkContext context = session.sparkContext();
    if (context.isStopped()) {
      return null;
    }
    Answers answers = BY_SESSION.get(session);
    if (answers == null) {
      answers = BY_CONTEXT.computeIfAbsent(context, IndexExtensions::daemon).orElse(null);
    }
    return answers == null ? null : part.apply(answers);
  }

  /** The JVM goes on after a context ends, and may begin another one, which nothing is known of. */
  private static void forgetAtEnd(SparkContext context) {
    context.addSparkListener(
        new SparkListener() {
          @Override
          public void onApplicationEnd(SparkListenerApplicationEnd end) {
            BY_CONTEXT.remove(context);
            BY_SESSION.keySet().removeIf(each -> each.sparkContext() == context);
            Uses.forget();
          }
        });
  }

  /** The daemon that a context's settings name, which are those of its start. */
  private static Optional<Answers> daemon(SparkContext context) {
    forgetAtEnd(context);
    String address = context.conf().get(IndexSettings.ADDRESS, "").strip();
    if (address.isEmpty()) {
      return Optional.empty();
    }
    try {
      String token = context.conf().get(IndexSettings.TOKEN, "");
      sendJar(context);
      return Optional.of(Answers.of(new HttpSource(address, token, context.defaultParallelism())));
    } catch (IllegalArgumentException error) {
      LOG.warn(
          "INDEX_NOT_ASKED: Spark scans: {}. Start the session with the settings that hudi-index"
              + " answer prints.",
          error.getMessage());
      return Optional.empty();
    }
  }

  /** Tasks need this jar, which the driver may have on its class path alone. */
  private static void sendJar(SparkContext context) {
    String jar =
        IndexExtensions.class.getProtectionDomain().getCodeSource().getLocation().toString();
    String name = jar.substring(jar.lastIndexOf('/'));
    if (!context.isLocal()
        && Scala.list(context.listJars()).stream().noneMatch(each -> each.endsWith(name))) {
      context.addJar(jar);
    }
  }

  private static Binding binding(SparkSession session) {
    return new Binding(() -> from(session, Answers::fullText));
  }

  private static AbstractFunction2<SparkSession, ParserInterface, ParserInterface> parser() {
    return new AbstractFunction2<>() {
      @Override
      public ParserInterface apply(SparkSession session, ParserInterface before) {
        return new IndexParser(session, before, () -> from(session, Answers::statements));
      }
    };
  }

  private static <A, B> AbstractFunction1<A, B> function(Function<A, B> made) {
    return new AbstractFunction1<>() {
      @Override
      public B apply(A argument) {
        return made.apply(argument);
      }
    };
  }

  /** Who answers a session's questions. */
  private record Answers(Decisions decisions, FullText fullText, Statements statements) {
    static Answers of(Source source) {
      Decisions decisions = new Decisions(source);
      Statements statements = new Statements(source, decisions::forget);
      return new Answers(decisions, new FullText(source), statements);
    }
  }
}
