package hudiindex.spark.catalyst;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import hudiindex.spark.Scala;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;

class ConditionsTest {
  private final AttributeReference id = column("id", DataTypes.IntegerType);
  private final AttributeReference name = column("name", DataTypes.StringType);
  private final AttributeReference other = column("other", DataTypes.IntegerType);
  private final Conditions conditions = new Conditions(List.of(id, name));

  private static AttributeReference column(String name, DataType type) {
    return new AttributeReference(
        name, type, true, Metadata.empty(), NamedExpression.newExprId(), Scala.seq(List.of()));
  }

  private static Literal number(int value) {
    return new Literal(value, DataTypes.IntegerType);
  }

  private String exact(Expression... conjuncts) {
    return conditions.exact(List.of(conjuncts)).map(Object::toString).orElse("not exact");
  }

  @Test
  void aComparisonNamesColumnTypeAndValue() {
    assertEquals(
        "[{\"op\":\">\",\"column\":[\"id\"],\"type\":\"integer\",\"values\":[5]}]",
        exact(new GreaterThan(id, number(5))));
  }

  @Test
  void aLiteralOnTheLeftTurnsTheComparisonRound() {
    assertEquals(exact(new GreaterThan(id, number(5))), exact(new LessThan(number(5), id)));
  }

  @Test
  void connectivesHoldTheirOperands() {
    assertEquals(
        "[{\"op\":\"not\",\"of\":[{\"op\":\"is not null\",\"column\":[\"name\"]}]}]",
        exact(new Not(new IsNotNull(name))));
    assertEquals("not exact", exact(new Or(new IsNotNull(name), new IsNotNull(other))));
  }

  @Test
  void aChainIsOneConnective() {
    Expression chain = new IsNotNull(id);
    for (int i = 0; i < 300; i++) {
      chain = new Or(chain, new And(new IsNotNull(id), new IsNotNull(name)));
    }
    String arm = "{\"op\":\"is not null\",\"column\":[\"id\"]}";
    String other = "{\"op\":\"is not null\",\"column\":[\"name\"]}";
    String both = ",{\"op\":\"and\",\"of\":[" + arm + "," + other + "]}";
    assertEquals("[{\"op\":\"or\",\"of\":[" + arm + both.repeat(300) + "]}]", exact(chain));
  }

  @Test
  void ofAConjunctionOnlyTheKnownPartsAreTold() {
    Expression known = new GreaterThan(id, number(5));
    Expression unknown = new EqualTo(other, number(1));
    List<Expression> conjuncts = Conditions.conjuncts(new And(unknown, known));
    assertEquals(List.of(unknown, known), conjuncts);
    assertEquals(exact(known), conditions.known(conjuncts).toString());
    assertTrue(conditions.exact(conjuncts).isEmpty());
  }

  @Test
  void valuesAreWrittenByTheirTypes() {
    assertEquals("[\"1.5\"]", written(1.5, DataTypes.DoubleType));
    assertEquals("[\"NaN\"]", written(Double.NaN, DataTypes.DoubleType));
    assertEquals("[19000]", written(19000, DataTypes.DateType));
    assertEquals("[\"AQI=\"]", written(new byte[] {1, 2}, DataTypes.BinaryType));
    assertEquals("[\"1.50\"]", written(Decimal.apply("1.50"), DataTypes.createDecimalType(3, 2)));
    assertEquals("[null]", written(null, DataTypes.IntegerType));
    assertEquals("[\"é\"]", written(UTF8String.fromString("é"), DataTypes.StringType));
  }

  @Test
  void bytesThatAreNoTextAreNotWritten() {
    UTF8String broken = UTF8String.fromBytes(new byte[] {(byte) 0xff});
    assertEquals(Optional.empty(), Values.of(new Literal(broken, DataTypes.StringType)));
    assertEquals("not exact", exact(new EqualTo(name, new Literal(broken, DataTypes.StringType))));
  }

  private static String written(Object value, DataType type) {
    return Values.of(new Literal(value, type)).orElseThrow().toString();
  }
}
