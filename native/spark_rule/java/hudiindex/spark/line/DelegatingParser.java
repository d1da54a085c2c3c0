package hudiindex.spark.line;

import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.collection.Seq;

/**
 * Leaves all texts to the parser before it, but for those that {@link #parsePlan} takes. {@code
 * LineParser} adds what the parsers of a line of Spark's releases have besides.
 */
abstract class DelegatingParser implements ParserInterface {
  /** Takes the texts that are left. */
  protected final ParserInterface before;

  DelegatingParser(ParserInterface before) {
    this.before = before;
  }

  @Override
  public LogicalPlan parseQuery(String text) throws ParseException {
    return before.parseQuery(text);
  }

  @Override
  public Expression parseExpression(String text) throws ParseException {
    return before.parseExpression(text);
  }

  @Override
  public TableIdentifier parseTableIdentifier(String text) throws ParseException {
    return before.parseTableIdentifier(text);
  }

  @Override
  public FunctionIdentifier parseFunctionIdentifier(String text) throws ParseException {
    return before.parseFunctionIdentifier(text);
  }

  @Override
  public Seq<String> parseMultipartIdentifier(String text) throws ParseException {
    return before.parseMultipartIdentifier(text);
  }

  @Override
  public StructType parseTableSchema(String text) throws ParseException {
    return before.parseTableSchema(text);
  }

  @Override
  public DataType parseDataType(String text) throws ParseException {
    return before.parseDataType(text);
  }
}
