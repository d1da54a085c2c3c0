package hudiindex.spark.line;

import hudiindex.spark.Scala;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapInArrow;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.execution.CacheManager;
import org.apache.spark.sql.execution.LocalTableScanExec;
import org.apache.spark.sql.execution.RDDScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.Seq;
import scala.collection.immutable.Map;

/** What differs between the lines of Spark's releases: this is 4. */
public final class SparkLine {
  /** Whether this line is tested with a release of Hudi. */
  public static final boolean TESTED = false;

  /** The node of DataFrame.mapInArrow. */
  public static final Class<? extends LogicalPlan> MAP_IN_ARROW = MapInArrow.class;

  /** Whether the registry of functions knows all by three parts: from 4.2 on. */
  private static final boolean QUALIFIES =
      !org.apache.spark.package$.MODULE$.SPARK_VERSION().matches("4\\.[01]\\..*");

  private SparkLine() {}

  /** What a session has its extensions from. */
  public static SparkSessionExtensions extensions(SparkSession session) {
    return classic(session).extensions();
  }

  /** An expression as a column. */
  public static Column column(Expression expression) {
    return ExpressionUtils.column(expression);
  }

  /** A column as an expression. */
  public static Expression expression(Column column) {
    return ExpressionUtils.expression(column);
  }

  /** An aggregate over a plan. */
  public static LogicalPlan aggregate(
      Seq<Expression> groups, Seq<NamedExpression> results, LogicalPlan child) {
    return new Aggregate(groups, results, child, Option.empty());
  }

  /** A relation that reads other files. */
  public static LogicalRelation copied(LogicalRelation relation, HadoopFsRelation files) {
    return relation.copy(
        files,
        relation.output(),
        relation.catalogTable(),
        relation.isStreaming(),
        relation.stream());
  }

  /** Whether Spark has a plan's rows in its cache. */
  public static boolean isCached(SparkSession session, LogicalPlan plan) {
    CacheManager cache = session.sharedState().cacheManager();
    return !cache.isEmpty() && cache.lookupCachedData(classic(session), plan).isDefined();
  }

  /** A node with these rows. */
  public static SparkPlan localRows(Seq<Attribute> output, List<InternalRow> rows) {
    return new LocalTableScanExec(output, Scala.seq(rows), Option.empty());
  }

  /** A node with the rows of an RDD. */
  public static SparkPlan rowsOf(RDD<InternalRow> rows, Seq<Attribute> output, String name) {
    UnknownPartitioning partitions = new UnknownPartitioning(rows.getNumPartitions());
    return new RDDScanExec(output, rows, name, partitions, Scala.seq(List.of()), Option.empty());
  }

  /** The rows of Arrow's batches. */
  public static Iterator<InternalRow> rows(
      Iterator<byte[]> batches, StructType schema, String zone) {
    return ArrowConverters$.MODULE$.fromBatchIterator(
        batches, schema, zone, false, false, TaskContext.get());
  }

  /** What the registry of functions calls one that Spark finds by its name alone. */
  public static FunctionIdentifier registered(String name) {
    return QUALIFIES
        ? new FunctionIdentifier(name, Option.apply("builtin"), Option.apply("system"))
        : new FunctionIdentifier(name);
  }

  /** A call of a function that the catalog has. */
  public static Expression call(
      SessionCatalog catalog, FunctionIdentifier function, Seq<Expression> arguments) {
    return catalog.lookupFunction(function, arguments);
  }

  /** An error in a text: its class, and its parts for programs. */
  public static ParseException parseError(
      String code, String text, Map<String, String> parameters) {
    return new IndexParseError(code, text, Scala.map(parameters));
  }

  private static org.apache.spark.sql.classic.SparkSession classic(SparkSession session) {
    return (org.apache.spark.sql.classic.SparkSession) session;
  }
}
