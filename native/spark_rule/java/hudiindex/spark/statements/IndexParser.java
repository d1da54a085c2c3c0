package hudiindex.spark.statements;

import com.fasterxml.jackson.databind.JsonNode;
import hudiindex.spark.Json;
import hudiindex.spark.SparkErrors;
import hudiindex.spark.Unchecked;
import hudiindex.spark.line.LineParser;
import hudiindex.spark.source.Statements;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.StructType;

/**
 * Parses index statements, and leaves all other texts to the parser before it, which is Hudi's.
 *
 * <p>A text costs a look at its first words. If they may be those of an index statement, the source
 * says whether it is one.
 */
public final class IndexParser extends LineParser {
  /** Whether the calling thread wants the parser before this one, see {@link #passedOn}. */
  private static final ThreadLocal<Boolean> PASSES_ON = ThreadLocal.withInitial(() -> false);

  private static final Pattern OUR_TYPES =
      Pattern.compile(
          "\\bCREATE\\s+INDEX\\b.*\\bUSING\\s+(lucene|btree|hbase)\\b",
          Pattern.CASE_INSENSITIVE | Pattern.DOTALL);

  private final SparkSession session;
  private final Supplier<Statements> statements;

  /**
   * @param before parses what is no index statement
   * @param statements runs index statements; supplies null if nobody does yet
   */
  public IndexParser(
      SparkSession session, ParserInterface before, Supplier<Statements> statements) {
    super(before);
    this.session = session;
    this.statements = statements;
  }

  /** Runs a statement of Hudi's or Spark's, although it begins like an index statement. */
  public static Dataset<Row> passedOn(SparkSession session, String text) {
    PASSES_ON.set(true);
    try {
      return session.sql(text);
    } finally {
      PASSES_ON.remove();
    }
  }

  @Override
  protected boolean isLeft(String text) {
    boolean ours = FirstWords.mayBeOurs(text) && !PASSES_ON.get();
    return !ours && !FirstWords.areAlmostOurs(text);
  }

  @Override
  public LogicalPlan parsePlan(String text) throws ParseException {
    if (!FirstWords.mayBeOurs(text) || PASSES_ON.get()) {
      return FirstWords.areAlmostOurs(text) ? parsedOrExplained(text) : before.parsePlan(text);
    }
    Statements present = statements.get();
    return present == null ? parsedByOthers(text) : parsed(text, present);
  }

  private LogicalPlan parsedOrExplained(String text) throws ParseException {
    try {
      return before.parsePlan(text);
    } catch (ParseException error) {
      ParseException known = SparkErrors.notOptimize();
      known.addSuppressed(error);
      throw known;
    }
  }

  private LogicalPlan parsedByOthers(String text) throws ParseException {
    if (OUR_TYPES.matcher(text).find()) { // Hudi takes the statement, and fails when it runs
      throw Unchecked.thrown(SparkErrors.notEnabled("runs this statement"));
    }
    try {
      return before.parsePlan(text);
    } catch (ParseException error) {
      if (FirstWords.areOnlyOurs(text)) {
        throw Unchecked.thrown(SparkErrors.notEnabled("runs this statement"));
      }
      throw error;
    }
  }

  private LogicalPlan parsed(String text, Statements present) throws ParseException {
    JsonNode answer;
    try {
      answer = Json.read(present.described(session, text));
    } catch (Exception error) { // whatever the source is
      throw Unchecked.thrown(SparkErrors.shown(error));
    }
    if (!answer.has("columns")) {
      return before.parsePlan(text);
    }
    String ddl = answer.get("columns").asText();
    StructType columns = ddl.isEmpty() ? new StructType() : StructType.fromDDL(ddl);
    Parameters parameters = Parameters.NONE;
    if (answer.has("query")) {
      parameters = Parameters.in(before.parsePlan(answer.get("query").asText()));
    }
    return IndexStatement.of(text, columns, parameters, present);
  }
}
