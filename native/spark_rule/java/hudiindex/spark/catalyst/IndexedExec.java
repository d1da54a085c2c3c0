package hudiindex.spark.catalyst;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hudiindex.spark.IndexSettings;
import hudiindex.spark.Json;
import hudiindex.spark.Scala;
import hudiindex.spark.Unchecked;
import hudiindex.spark.line.SparkLine;
import hudiindex.spark.source.Decision;
import hudiindex.spark.source.Request;
import hudiindex.spark.source.Rows;
import hudiindex.spark.source.SourceFailed;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.spark.SparkException;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition$;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.LocalTableScanExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.Tuple2;
import scala.collection.IndexedSeq;
import scala.collection.Iterator;
import scala.collection.Seq;

/**
 * Reads the rows that an index finds when the query runs, once, as Spark's scan lists its files
 * once; by its child, Spark's own scan, if that fails or takes too long.
 *
 * <p>Filters and projects what it reads, as its child does: few rows are in the driver, where a job
 * for that would take longer than anything else.
 *
 * <p>Nodes are serialized with the tasks of nodes above them: only the child goes along.
 */
public final class IndexedExec extends SparkPlan {
  private static final long serialVersionUID = 1L;
  private static final Logger LOG = LoggerFactory.getLogger(IndexedExec.class);
  private static final String NOW_DECIDED = "the index finds few rows by the value of a sub-query";

  private final transient Seq<NamedExpression> columns;
  private final transient Seq<Expression> filters;
  private final transient Seq<Attribute> read;
  private final SparkPlan child;
  private final Option<SparkPlan> keys;
  private final transient PlannedRead plannedRead;
  private transient SparkPlan reader;
  private transient Optional<KeyValues> keyValues;

  /**
   * @param columns the output, over what is read
   * @param filters of which all have to be TRUE
   * @param read the table's columns that are read
   * @param child the same rows by Spark's own scan, filtered and projected
   * @param keys the values of the request's key, in one column
   */
  public IndexedExec(
      Seq<NamedExpression> columns,
      Seq<Expression> filters,
      Seq<Attribute> read,
      SparkPlan child,
      Option<SparkPlan> keys,
      PlannedRead plannedRead) {
    this.columns = columns;
    this.filters = filters;
    this.read = read;
    this.child = child;
    this.keys = keys;
    this.plannedRead = plannedRead;
  }

  private synchronized SparkPlan reader() {
    if (reader == null) {
      keyValues = plannedRead.request().key().map(key -> KeyValues.read(key, keys.get()));
      reader = withSession(() -> hasNoKey() ? SparkLine.localRows(output(), List.of()) : chosen());
    }
    return reader;
  }

  /** Nodes take their session from the thread that makes them, which may have none by now. */
  private <T> T withSession(Supplier<T> made) {
    return session().withActive(Scala.call(made));
  }

  private boolean hasNoKey() {
    return keyValues.isPresent() && keyValues.get().areNone();
  }

  private SparkPlan chosen() {
    try {
      IndexSettings settings = IndexSettings.of(session());
      if (!settings.enabled()) {
        return bySpark(IndexSettings.ENABLED + " has been set to false");
      }
      if (read.isEmpty()) {
        return bySpark("the query needs no column of it");
      }
      // Spark looks for the files when a query runs, too, and the session may have written since.
      if (!plannedRead.files().instants().equals(plannedRead.request().instants())) {
        return bySpark("the table has changed since the query was planned");
      }
      ArrayNode conditions = conditionsOnSubqueries();
      if (keyValues.isPresent()) {
        Optional<ObjectNode> condition = keyValues.get().condition();
        if (condition.isEmpty()) {
          return bySpark("the join has too many keys");
        }
        conditions.add(condition.get());
      }
      Request request = plannedRead.request().withColumns(readColumns());
      if (!conditions.isEmpty()) {
        request = request.withConditions(conditions);
      }
      JobProperties properties = new JobProperties(session().sparkContext());
      long use = plannedRead.use().number();
      long millis = settings.readMillis();
      return plan(plannedRead.decisions().rows(session(), request, use, millis, properties));
    } catch (ArrowRows.QueryFails error) {
      // Spark may stop before that row, as for LIMIT, or evaluate conditions in another order.
      return bySpark("an expression of the query fails: " + inOneLine(error.getCause()));
    } catch (InterruptedException error) {
      throw Unchecked.thrown(error); // the query has been cancelled
    } catch (SourceFailed | IOException | RuntimeException | LinkageError error) {
      LOG.warn(
          "INDEX_NOT_READ: Spark scans {}: {}. See Python's log.",
          plannedRead.request().table(),
          inOneLine(error));
      LOG.debug("The index was not read", error);
      return bySpark("reading by index failed: " + inOneLine(error));
    }
  }

  /** The first line: an error of an expression shows the query below that. */
  private static String inOneLine(Throwable error) {
    return String.valueOf(error.getMessage()).lines().findFirst().orElse("");
  }

  private SparkPlan plan(Rows rows) throws IOException, ArrowRows.QueryFails {
    if (rows instanceof Rows.InDriver here) {
      List<InternalRow> result = new ArrowRows(read, filters, columns).of(here.stream());
      plannedRead.use().read(result.size());
      here.cost().ifPresent(plannedRead.use()::cost);
      readByDriver();
      return SparkLine.localRows(output(), result);
    }
    if (rows instanceof Rows.InParts parts) {
      plannedRead.use().cost(parts.cost());
      readByDriver();
      return filtered(new ArrowRows(read, filters, columns).of(parts.streams(), sparkContext()));
    }
    if (rows instanceof Rows.ByTasks tasks) {
      boolean undecided = plannedRead.decision().isUndecided();
      plannedRead
          .use()
          .readBy(Decision.TASKS, undecided ? NOW_DECIDED : plannedRead.decision().reason());
      return filtered(tasks.frame().queryExecution().toRdd());
    }
    if (rows instanceof Rows.Cancelled cancelled) {
      throw Unchecked.thrown(new SparkException(cancelled.message()));
    }
    return bySpark(((Rows.BySpark) rows).reason());
  }

  private void readByDriver() {
    if (plannedRead.decision().isUndecided()) {
      plannedRead.use().readBy(Decision.DRIVER, NOW_DECIDED);
    }
  }

  /** What Spark's tasks filter and project. */
  private SparkPlan filtered(RDD<InternalRow> rows) {
    SparkPlan scan = SparkLine.rowsOf(rows, read, nodeName());
    SparkPlan filtered =
        Scala.list(filters).stream()
            .reduce(And::new)
            .<SparkPlan>map(condition -> new FilterExec(condition, scan))
            .orElse(scan);
    return new ProjectExec(columns, filtered);
  }

  private SparkPlan bySpark(String reason) {
    plannedRead.use().readBy(Decision.SPARK, reason);
    // Spark may have planned for the few rows that the keys leave.
    return keyValues.isPresent() ? keyValues.get().among(child) : child;
  }

  /**
   * The conditions with values of sub-queries, which have run. None on counts, nor on the best
   * rows: those are taken of what comes out.
   */
  private ArrayNode conditionsOnSubqueries() {
    if (!plannedRead.request().isOfRows()) {
      return Json.array();
    }
    List<Expression> known = SubqueryValues.known(Scala.list(filters));
    List<Attribute> columns = new ArrayList<>();
    for (Attribute each : Scala.list(read)) {
      if (!plannedRead.computed().containsKey(each.exprId().id())) {
        columns.add(each);
      }
    }
    return new Conditions(columns).known(known);
  }

  private List<Request.Column> readColumns() {
    List<Request.Column> result = new ArrayList<>();
    for (Attribute each : Scala.list(read)) {
      String call = plannedRead.computed().get(each.exprId().id());
      result.add(new Request.Column(each.name(), each.dataType(), Optional.ofNullable(call)));
    }
    return result;
  }

  private boolean isOnePartition() {
    return keys.isEmpty() && OnePartition.holds(plannedRead.decision());
  }

  @Override
  public Partitioning outputPartitioning() {
    return isOnePartition() ? SinglePartition$.MODULE$ : super.outputPartitioning();
  }

  @Override
  public RDD<InternalRow> doExecute() {
    SparkPlan rows = reader();
    return isOnePartition() ? withSession(() -> OnePartition.of(rows)) : rows.execute();
  }

  @Override
  public InternalRow[] executeCollect() {
    return prepared(() -> reader().executeCollect());
  }

  /** What is broadcast: rows in the driver need no job. */
  @Override
  public Tuple2<Object, Iterator<InternalRow>> executeCollectIterator() {
    return prepared(
        () -> {
          if (reader() instanceof LocalTableScanExec here) {
            InternalRow[] rows = here.executeCollect();
            return Tuple2.apply((long) rows.length, Scala.seq(List.of(rows)).iterator());
          }
          return reader().executeCollectIterator();
        });
  }

  @Override
  public InternalRow[] executeTake(int number) {
    return prepared(() -> reader().executeTake(number));
  }

  @Override
  public InternalRow[] executeTail(int number) {
    return prepared(() -> reader().executeTail(number));
  }

  /** After the sub-queries in the filters have run. */
  private <T> T prepared(Supplier<T> rows) {
    return executeQuery(Scala.call(rows));
  }

  @Override
  public String nodeName() {
    return "HudiIndexScan";
  }

  @Override
  public String argString(int maxFields) {
    return plannedRead.shown();
  }

  @Override
  public Seq<Attribute> output() {
    return child.output();
  }

  @Override
  public AttributeSet producedAttributes() {
    return AttributeSet.apply(Scala.<Expression>seq(Scala.list(read)));
  }

  @Override
  public Seq<SparkPlan> children() {
    return keys.isEmpty() ? Scala.seq(List.of(child)) : Scala.seq(List.of(child, keys.get()));
  }

  @Override
  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    Option<SparkPlan> others = keys.isEmpty() ? keys : Option.apply(children.last());
    return new IndexedExec(columns, filters, read, children.head(), others, plannedRead);
  }

  /** The child filters and projects in the same way. */
  @Override
  public SparkPlan doCanonicalize() {
    SparkPlan scan = child.canonicalized();
    Option<SparkPlan> others = keys.isEmpty() ? keys : Option.apply(keys.get().canonicalized());
    return new IndexedExec(
        Scala.seq(List.of()),
        Scala.seq(List.of()),
        Scala.seq(List.of()),
        scan,
        others,
        plannedRead);
  }

  @Override
  public int productArity() {
    return 6;
  }

  @Override
  public Object productElement(int place) {
    return switch (place) {
      case 0 -> columns;
      case 1 -> filters;
      case 2 -> read;
      case 3 -> child;
      case 4 -> keys;
      default -> plannedRead;
    };
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof IndexedExec;
  }

  /** In all parts: Spark discards what a rule has done to expressions if the nodes are equal. */
  @Override
  public boolean equals(Object other) {
    return other instanceof IndexedExec that
        && that.plannedRead.equals(plannedRead)
        && that.columns.equals(columns)
        && that.filters.equals(filters)
        && that.read.equals(read)
        && that.child.equals(child)
        && that.keys.equals(keys);
  }

  @Override
  public int hashCode() {
    return Objects.hash(plannedRead, columns, filters, read, child, keys);
  }
}
