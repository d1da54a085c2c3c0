package hudiindex.spark.catalyst;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import hudiindex.spark.Json;
import hudiindex.spark.Scala;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.ArrayContains;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.Contains;
import org.apache.spark.sql.catalyst.expressions.EndsWith;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.RLike;
import org.apache.spark.sql.catalyst.expressions.StartsWith;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.types.BooleanType;

/**
 * Writes Catalyst's conditions on one relation as JSON. Each is an object with {@code op}:
 *
 * <ul>
 *   <li>{@code and}, {@code or}, {@code not}, with {@code of}, a list of conditions;
 *   <li>{@code =}, {@code <=>}, {@code <}, {@code <=}, {@code >}, {@code >=}, {@code in}, {@code
 *       array contains}, {@code starts with}, {@code ends with}, {@code contains}, {@code like}
 *       (with {@code escape}), {@code rlike}, with {@code column}, the names from the outermost
 *       struct in, {@code type}, that of the values, and {@code values} (see {@link Values});
 *   <li>{@code is null}, {@code is not null}, {@code is true}, with {@code column};
 *   <li>{@code search}, with {@code column} and {@code call}, see {@link FullTextCall};
 *   <li>{@code awaited}, with {@code column}: a comparison with the value of a sub-query, which is
 *       known when the query runs;
 *   <li>{@code unknown}, below the others: something that only Spark evaluates.
 * </ul>
 *
 * Spark has resolved names, coerced types and folded constants, so time zone and ANSI mode of the
 * session are in them already.
 */
final class Conditions {
  /** The most values of an IN. */
  static final int MOST_VALUES = 10_000;

  private static final String AWAITED = "awaited";
  private static final String UNKNOWN = "unknown";

  private final List<? extends Attribute> relation;

  /**
   * @param relation the attributes of the relation; a condition on any other is unknown
   */
  Conditions(List<? extends Attribute> relation) {
    this.relation = relation;
  }

  /** The parts of a conjunction. */
  static List<Expression> conjuncts(Expression condition) {
    List<Expression> result = new ArrayList<>();
    addConjuncts(condition, result);
    return result;
  }

  private static void addConjuncts(Expression condition, List<Expression> into) {
    if (condition instanceof And both) {
      addConjuncts(both.left(), into);
      addConjuncts(both.right(), into);
    } else {
      into.add(condition);
    }
  }

  /** What may be evaluated once more: a sub-query would run twice, and a random number differ. */
  static Optional<Expression> repeatable(List<Expression> conjuncts) {
    return conjuncts.stream()
        .filter(each -> each.deterministic() && !SubqueryExpression.hasSubquery(each))
        .reduce(And::new);
  }

  /** Those of the conjuncts that are known, or conditions that they imply. */
  ArrayNode known(List<Expression> conjuncts) {
    ArrayNode result = Json.array();
    for (Expression each : conjuncts) {
      ObjectNode condition = each.deterministic() ? written(Implied.by(each)) : unknown();
      if (isKnown(condition)) {
        result.add(condition);
      }
    }
    return result;
  }

  /** All of the conjuncts; empty if any of them is not known in all its parts. */
  Optional<ArrayNode> exact(List<Expression> conjuncts) {
    ArrayNode result = Json.array();
    for (Expression each : conjuncts) {
      ObjectNode condition = each.deterministic() ? written(each) : unknown();
      List<String> ops = condition.findValuesAsText("op");
      if (ops.contains(UNKNOWN) || ops.contains(AWAITED)) {
        return Optional.empty();
      }
      result.add(condition);
    }
    return Optional.of(result);
  }

  private ObjectNode written(Expression condition) {
    if (condition instanceof And both) {
      return combined("and", both.left(), both.right());
    }
    if (condition instanceof Or either) {
      return combined("or", either.left(), either.right());
    }
    if (condition instanceof Not not) {
      return combined("not", not.child());
    }
    if (condition instanceof BinaryComparison comparison) {
      return compared(comparison);
    }
    if (condition instanceof In in) {
      return in(in.value(), Scala.list(in.list()));
    }
    if (condition instanceof InSet in) {
      return in.hset().size() > MOST_VALUES
          ? unknown()
          : test("in", in.child(), Values.of(in.hset(), in.child().dataType()));
    }
    if (condition instanceof IsNull test) {
      return test("is null", test.child());
    }
    if (condition instanceof IsNotNull test) {
      return test("is not null", test.child());
    }
    if (condition instanceof StartsWith test) {
      return test("starts with", test.left(), test.right());
    }
    if (condition instanceof EndsWith test) {
      return test("ends with", test.left(), test.right());
    }
    if (condition instanceof Contains test) {
      return test("contains", test.left(), test.right());
    }
    if (condition instanceof Like test) {
      ObjectNode like = test("like", test.left(), test.right());
      return isKnown(like) ? like.put("escape", String.valueOf(test.escapeChar())) : like;
    }
    if (condition instanceof RLike test) {
      return test("rlike", test.left(), test.right());
    }
    if (condition instanceof ArrayContains test) {
      return test("array contains", test.left(), test.right());
    }
    if (condition instanceof FullTextCall call && call.isSearch()) {
      ObjectNode search = test("search", call.child());
      return isKnown(search) ? search.set("call", call.json()) : search;
    }
    return condition.dataType() instanceof BooleanType ? test("is true", condition) : unknown();
  }

  /** A chain of ANDs or ORs as one: JSON of more than some hundred levels is not read. */
  private ObjectNode combined(String op, Expression... conditions) {
    ObjectNode result = Json.object().put("op", op);
    ArrayNode of = result.putArray("of");
    boolean anyKnown = false;
    for (Expression each : conditions) {
      ObjectNode condition = written(each);
      anyKnown |= isKnown(condition);
      if (conditions.length > 1 && condition.path("op").asText().equals(op)) {
        of.addAll((ArrayNode) condition.get("of"));
      } else {
        of.add(condition);
      }
    }
    return anyKnown ? result : unknown();
  }

  private ObjectNode compared(BinaryComparison comparison) {
    String op = operator(comparison);
    if (op == null) {
      return unknown();
    }
    if (SubqueryValues.has(comparison.right())) {
      return test(AWAITED, comparison.left());
    }
    if (SubqueryValues.has(comparison.left())) {
      return test(AWAITED, comparison.right());
    }
    return comparison.left() instanceof Literal
        ? test(mirrored(op), comparison.right(), comparison.left())
        : test(op, comparison.left(), comparison.right());
  }

  private static String operator(BinaryComparison comparison) {
    if (comparison instanceof EqualTo) {
      return "=";
    }
    if (comparison instanceof EqualNullSafe) {
      return "<=>";
    }
    if (comparison instanceof LessThan) {
      return "<";
    }
    if (comparison instanceof LessThanOrEqual) {
      return "<=";
    }
    if (comparison instanceof GreaterThan) {
      return ">";
    }
    return comparison instanceof GreaterThanOrEqual ? ">=" : null;
  }

  private static String mirrored(String op) {
    return switch (op) {
      case "<" -> ">";
      case "<=" -> ">=";
      case ">" -> "<";
      case ">=" -> "<=";
      default -> op;
    };
  }

  private ObjectNode in(Expression column, List<Expression> values) {
    if (values.isEmpty() || values.size() > MOST_VALUES) {
      return unknown();
    }
    ArrayNode all = Json.array();
    for (Expression each : values) {
      Optional<ArrayNode> value = Values.of(each);
      if (value.isEmpty()) {
        return unknown();
      }
      all.addAll(value.get());
    }
    return test("in", column, Optional.of(all)).put("type", values.get(0).dataType().typeName());
  }

  private ObjectNode test(String op, Expression column, Expression value) {
    ObjectNode result = test(op, column, Values.of(value));
    return isKnown(result) ? result.put("type", value.dataType().typeName()) : result;
  }

  private ObjectNode test(String op, Expression column, Optional<ArrayNode> values) {
    ObjectNode result = test(op, column);
    if (!isKnown(result) || values.isEmpty()) {
      return unknown();
    }
    result.put("type", column.dataType().typeName()).set("values", values.get());
    return result;
  }

  private ObjectNode test(String op, Expression column) {
    ObjectNode result = Json.object().put("op", op);
    return addNames(column, result.putArray("column")) ? result : unknown();
  }

  /** A call on a column of the relation, as {@link hudiindex.spark.source.Request} has it. */
  String computed(FullTextCall call) {
    ObjectNode result = Json.object();
    result.set("call", call.json());
    result.set("of", names(call.child()).orElseThrow());
    return result.toString();
  }

  /** The names of a column of the relation, from the outermost struct in; empty for all else. */
  Optional<ArrayNode> names(Expression column) {
    ArrayNode names = Json.array();
    return addNames(column, names) ? Optional.of(names) : Optional.empty();
  }

  private boolean addNames(Expression column, ArrayNode names) {
    if (column instanceof Attribute attribute) {
      Optional<Attribute> own = own(attribute);
      own.ifPresent(each -> names.add(each.name()));
      return own.isPresent();
    }
    if (column instanceof GetStructField field && addNames(field.child(), names)) {
      names.add(field.childSchema().fields()[field.ordinal()].name());
      return true;
    }
    return false;
  }

  /** The relation's attribute, since a query may write its name in other letters. */
  private Optional<Attribute> own(Attribute attribute) {
    for (Attribute each : relation) { // Spark's sets sort themselves when one looks into them
      if (each.exprId().equals(attribute.exprId())) {
        return Optional.of(each);
      }
    }
    return Optional.empty();
  }

  private static ObjectNode unknown() {
    return Json.object().put("op", UNKNOWN);
  }

  private static boolean isKnown(ObjectNode condition) {
    return !condition.get("op").asText().equals(UNKNOWN);
  }
}
