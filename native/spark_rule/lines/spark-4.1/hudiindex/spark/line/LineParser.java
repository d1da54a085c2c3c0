package hudiindex.spark.line;

import org.apache.spark.sql.catalyst.parser.ParameterContext;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.StructType;

/** The parsers of this line of Spark's releases: 4.1 and 4.2. */
public abstract class LineParser extends DelegatingParser {
  /**
   * @param before takes the texts that are left
   */
  protected LineParser(ParserInterface before) {
    super(before);
  }

  /** Whether a text is left to the parser before. */
  protected abstract boolean isLeft(String text);

  @Override
  public StructType parseRoutineParam(String text) throws ParseException {
    return before.parseRoutineParam(text);
  }

  /** The parser before puts in the values of parameters. */
  @Override
  public LogicalPlan parsePlanWithParameters(String text, ParameterContext parameters)
      throws ParseException {
    return isLeft(text) ? before.parsePlanWithParameters(text, parameters) : parsePlan(text);
  }
}
