package hudiindex.spark.catalyst;

import hudiindex.spark.Scala;
import hudiindex.spark.line.SparkLine;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.channels.Channels;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.Predicate;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import scala.collection.Iterator;
import scala.collection.Seq;

/** Spark's rows of a stream in Arrow's format: filtered, and with the columns of a query. */
final class ArrowRows {
  private static final String ZONE = "UTC";

  /** What each message of a stream begins with. */
  private static final byte[] MARK = {-1, -1, -1, -1};

  private final Seq<Attribute> read;
  private final StructType schema;
  private final Seq<Expression> filters;
  private final Seq<NamedExpression> columns;

  /**
   * @param read the columns of the stream, in its order
   * @param filters of which all have to be TRUE
   * @param columns the columns of the result
   */
  ArrowRows(Seq<Attribute> read, Seq<Expression> filters, Seq<NamedExpression> columns) {
    this.read = read;
    this.schema = DataTypeUtils.fromAttributes(read);
    this.filters = filters;
    this.columns = columns;
  }

  /**
   * The rows of a stream.
   *
   * @throws IllegalArgumentException its columns are others: Spark does not look at the types in a
   *     stream, and would read strings with long offsets as rubbish
   * @throws QueryFails an expression of the query fails on a row
   */
  List<InternalRow> of(byte[] stream) throws IOException, QueryFails {
    check(stream, schema);
    Iterator<InternalRow> rows = rows(stream, schema);
    Expression condition =
        Scala.list(filters).stream().reduce(And::new).orElse(Literal.TrueLiteral());
    BasePredicate wanted = Predicate.create(condition, read);
    wanted.initialize(0);
    UnsafeProjection projected = UnsafeProjection.create(expressions(columns), read);
    projected.initialize(0);
    List<InternalRow> result = new ArrayList<>();
    while (rows.hasNext()) {
      InternalRow row = rows.next();
      try {
        if (wanted.eval(row)) {
          // Copied, since a batch's memory is released after its last row.
          result.add(projected.apply(row).copy());
        }
      } catch (Exception error) { // whatever the query's functions throw
        throw new QueryFails(error);
      }
    }
    return result;
  }

  /**
   * The rows of several streams with the same columns, one a task, which neither filters nor
   * projects them.
   *
   * @throws IllegalArgumentException their columns are others
   */
  RDD<InternalRow> of(List<Broadcast<byte[]>> streams, SparkContext context) throws IOException {
    StructType columnsRead = schema; // tasks need no more
    check(streams.get(0).value(), columnsRead);
    return JavaSparkContext.fromSparkContext(context)
        .parallelize(streams, streams.size())
        .flatMap(stream -> Scala.iterator(rows(stream.value(), columnsRead)))
        .rdd();
  }

  private static Iterator<InternalRow> rows(byte[] stream, StructType schema) {
    Iterator<byte[]> batches =
        ArrowConverters$.MODULE$.getBatchesFromStream(
            Channels.newChannel(new ByteArrayInputStream(stream)));
    return SparkLine.rows(batches, schema, ZONE);
  }

  /** An expression of the query fails on a row, as in a division by zero. */
  static final class QueryFails extends Exception {
    private static final long serialVersionUID = 1L;

    QueryFails(Exception cause) {
      super(cause);
    }
  }

  private static Seq<Expression> expressions(Seq<NamedExpression> columns) {
    return Scala.seq(Scala.list(columns).stream().map(each -> (Expression) each).toList());
  }

  private static void check(byte[] stream, StructType schema) throws IOException {
    // Arrow's reader would take the first bytes of anything else for a length, and reserve as much.
    if (!Arrays.equals(MARK, Arrays.copyOf(stream, MARK.length))) {
      throw new IOException("The index returns no stream in Arrow's format");
    }
    List<Field> expected = ArrowUtils.toArrowSchema(schema, ZONE, false, false).getFields();
    try (RootAllocator allocator = new RootAllocator();
        ArrowStreamReader reader =
            new ArrowStreamReader(new ByteArrayInputStream(stream), allocator)) {
      List<Field> actual = reader.getVectorSchemaRoot().getSchema().getFields();
      if (!areAlike(actual, expected, true)) {
        throw new IllegalArgumentException(
            "The index returns " + actual + ", Spark has " + expected);
      }
    }
  }

  /** Whether fields have the same types; the label of a time zone changes no value. */
  private static boolean areAlike(List<Field> actual, List<Field> expected, boolean named) {
    if (actual.size() != expected.size()) {
      return false;
    }
    for (int place = 0; place < actual.size(); place++) {
      Field one = actual.get(place);
      Field other = expected.get(place);
      boolean structs = other.getType() instanceof ArrowType.Struct;
      if (named && !one.getName().equals(other.getName())
          || !withoutZone(one.getType()).equals(withoutZone(other.getType()))
          || !areAlike(one.getChildren(), other.getChildren(), structs)) {
        return false;
      }
    }
    return true;
  }

  private static ArrowType withoutZone(ArrowType type) {
    return type instanceof ArrowType.Timestamp time && time.getTimezone() != null
        ? new ArrowType.Timestamp(time.getUnit(), ZONE)
        : type;
  }
}
