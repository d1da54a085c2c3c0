package hudiindex.spark.statements;

import hudiindex.spark.Scala;
import hudiindex.spark.SparkErrors;
import hudiindex.spark.Unchecked;
import hudiindex.spark.catalyst.JobProperties;
import hudiindex.spark.source.Outcome;
import hudiindex.spark.source.Statements;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.execution.command.LeafRunnableCommand;
import org.apache.spark.sql.types.StructType;
import scala.Enumeration;
import scala.collection.IndexedSeq;
import scala.collection.Seq;

/**
 * An index statement, which a source runs. Spark runs commands once, as soon as they are analyzed.
 */
public final class IndexStatement extends LogicalPlan implements LeafRunnableCommand {
  private static final long serialVersionUID = 1L;

  private final String text;
  private final List<String> names;
  private final Seq<Expression> values;
  private final Seq<Attribute> output;
  private final transient Statements statements;
  private Seq<Enumeration.Value> nodePatterns = Scala.seq(List.of(TreePattern.COMMAND()));

  /**
   * @param names and values of parameters, see {@link Parameters}
   */
  public IndexStatement(
      String text,
      List<String> names,
      Seq<Expression> values,
      Seq<Attribute> output,
      Statements statements) {
    this.text = text;
    this.names = names;
    this.values = values;
    this.output = output;
    this.statements = statements;
  }

  /** A statement whose result has certain columns. */
  static IndexStatement of(
      String text, StructType columns, Parameters parameters, Statements statements) {
    List<Attribute> output = List.copyOf(Scala.list(DataTypeUtils.toAttributes(columns)));
    return new IndexStatement(
        text, parameters.names(), parameters.values(), Scala.seq(output), statements);
  }

  @Override
  public Seq<Row> run(SparkSession session) {
    try {
      Object arguments = new Parameters(names, values).arguments();
      JobProperties properties = new JobProperties(session.sparkContext());
      Outcome outcome = statements.outcome(session, text, arguments, properties);
      Dataset<Row> result =
          outcome instanceof Outcome.Frame frame
              ? frame.rows()
              : byHudi(session, (Outcome.LeftToHudi) outcome);
      if (!result.schema().equals(schema())) {
        throw SparkErrors.changed();
      }
      return Scala.seq(result.collectAsList());
    } catch (Exception error) { // whatever the source is
      throw Unchecked.thrown(SparkErrors.shown(error));
    }
  }

  private Dataset<Row> byHudi(SparkSession session, Outcome.LeftToHudi left) throws Exception {
    try {
      return IndexParser.passedOn(session, text);
    } catch (Exception error) { // whatever Hudi throws
      throw left.otherwise().<Exception>map(known -> known).orElse(error);
    }
  }

  @Override
  public Seq<Attribute> output() {
    return output;
  }

  @Override
  public Seq<LogicalPlan> children() {
    return Scala.seq(List.of());
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return this;
  }

  @Override
  public Seq<Enumeration.Value> nodePatterns() {
    return nodePatterns;
  }

  @Override
  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(
      Seq<Enumeration.Value> patterns) {
    nodePatterns = patterns;
  }

  @Override
  public String argString(int maxFields) {
    return text;
  }

  @Override
  public int productArity() {
    return 5;
  }

  @Override
  public Object productElement(int place) {
    return switch (place) {
      case 0 -> text;
      case 1 -> names;
      case 2 -> values;
      case 3 -> output;
      default -> statements;
    };
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof IndexStatement;
  }

  /** No two statements are the same: each runs. */
  @Override
  public boolean equals(Object other) {
    return this == other;
  }

  @Override
  public int hashCode() {
    return System.identityHashCode(this);
  }
}
