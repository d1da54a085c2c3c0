package hudiindex.spark.line;

import hudiindex.spark.Scala;
import java.util.Map;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.trees.CurrentOrigin;
import org.apache.spark.sql.catalyst.trees.Origin;
import scala.Option;

/** An error of one of Spark's classes without parameters, as this line makes it: 4.0. */
abstract class LineParseError extends ParseException {
  private static final long serialVersionUID = 1L;

  LineParseError(String listed) {
    this(listed, CurrentOrigin.get());
  }

  private LineParseError(String listed, Origin nowhere) {
    super(Option.empty(), nowhere, nowhere, listed, Scala.immutable(Map.of()));
  }
}
