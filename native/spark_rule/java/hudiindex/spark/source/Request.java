package hudiindex.spark.source;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.util.RawValue;
import hudiindex.spark.Json;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.spark.sql.types.AtomicType;
import org.apache.spark.sql.types.DataType;

/**
 * What a query wants of one Hudi table. Equal requests want the same rows and columns of the same
 * snapshot.
 *
 * <p>In JSON: {@code version}; {@code table}, its base path; {@code instants}, the requested times
 * of the completed commits that Spark's own relation sees; {@code options} of that relation; {@code
 * columns} with {@code name} and {@code type} (Spark's JSON), see {@link Column}; {@code where}, a
 * list of conditions that all rows wanted fulfill, as hudiindex.spark.catalyst.Conditions writes
 * them; while the keys of a join are not read yet, {@code key}, see {@link Key}; if the query wants
 * numbers of these rows instead, {@code counts}, see {@link Counts}; and if it wants only those
 * that a full-text search scores best, {@code best}, see {@link Best}.
 */
public record Request(
    String table,
    List<String> instants,
    Map<String, String> options,
    List<Column> columns,
    ArrayNode where,
    Optional<Key> key,
    Optional<Counts> counts,
    Optional<Best> best) {
  static final int VERSION = 1;

  /**
   * A column's name, and its type as Spark writes it in JSON.
   *
   * @param computed for a column with the values of a full-text call, in JSON: {@code call} and
   *     {@code of}, the names of the table's column with the texts, from the outermost struct in
   */
  public record Column(String name, String type, Optional<String> computed) {
    public Column(String name, DataType type) {
      this(name, type, Optional.empty());
    }

    public Column(String name, DataType type, Optional<String> computed) {
      this(name, json(type), computed);
    }

    /** Spark's JSON; the short way where it is the name, since Spark's own is slow. */
    private static String json(DataType type) {
      return type instanceof AtomicType ? '"' + type.typeName() + '"' : type.json();
    }
  }

  /**
   * The rows with the highest scores.
   *
   * @param score the score as {@link Column} writes it
   */
  public record Best(int rows, String score) {}

  /**
   * A column of which only rows with one of some values are needed. The values come from the other
   * side of a join when the query runs.
   *
   * @param most the most values that are expected
   */
  public record Key(String column, long most, boolean orNull) {}

  /** A request for rows, without the keys of a join. */
  public static Request of(
      String table,
      List<String> instants,
      Map<String, String> options,
      List<Column> columns,
      ArrayNode where) {
    return new Request(
        table,
        instants,
        new TreeMap<>(options),
        columns,
        where,
        Optional.empty(),
        Optional.empty(),
        Optional.empty());
  }

  /** The request in JSON. */
  public ObjectNode json() {
    ObjectNode json = Json.object().put("version", VERSION).put("table", table);
    ArrayNode times = json.putArray("instants");
    instants.forEach(times::add);
    ObjectNode settings = json.putObject("options");
    options.forEach(settings::put);
    ArrayNode names = json.putArray("columns");
    for (Column each : columns) {
      ObjectNode column = names.addObject().put("name", each.name());
      column.putRawValue("type", new RawValue(each.type()));
      each.computed().ifPresent(call -> column.putRawValue("computed", new RawValue(call)));
    }
    json.set("where", where);
    key.ifPresent(
        each -> json.putObject("key").put("column", each.column()).put("most", each.most()));
    counts.ifPresent(each -> json.set("counts", each.json()));
    best.ifPresent(
        each ->
            json.putObject("best")
                .put("rows", each.rows())
                .putRawValue("score", new RawValue(each.score())));
    return json;
  }

  /** The same as text. */
  public String text() {
    return json().toString();
  }

  /** The same rows with other columns, since Spark prunes on after a decision; the same counts. */
  public Request withColumns(List<Column> others) {
    return isOfCounts() || others.equals(columns)
        ? this
        : new Request(table, instants, options, others, where, key, counts, best);
  }

  /** Of the same rows those with one of some values, which are not known yet. */
  public Request withKey(Key values) {
    return new Request(table, instants, options, columns, where, Optional.of(values), counts, best);
  }

  /**
   * Of the same rows those that fulfill some more conditions, instead of having one of the values.
   */
  public Request withConditions(ArrayNode conditions) {
    ArrayNode all = where.deepCopy().addAll(conditions);
    return new Request(table, instants, options, columns, all, Optional.empty(), counts, best);
  }

  /** Numbers of the same rows, which need the same columns. */
  public Request counting(Counts wanted) {
    return new Request(table, instants, options, columns, where, key, Optional.of(wanted), best);
  }

  /** Of the same rows those with the highest scores. */
  public Request ofBest(Best wanted) {
    return new Request(table, instants, options, columns, where, key, counts, Optional.of(wanted));
  }

  /** Whether counts are wanted instead of rows. */
  public boolean isOfCounts() {
    return counts.isPresent();
  }

  /** Whether all rows are wanted that fulfill the conditions, and not their counts or the best. */
  public boolean isOfRows() {
    return counts.isEmpty() && best.isEmpty();
  }

  /** Without the many values that requests on one table have in common. */
  @Override
  public int hashCode() {
    return Objects.hash(table, where, key);
  }
}
