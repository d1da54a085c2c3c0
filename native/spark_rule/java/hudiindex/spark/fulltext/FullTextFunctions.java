package hudiindex.spark.fulltext;

import hudiindex.spark.catalyst.FullTextCall;
import hudiindex.spark.line.SparkLine;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import scala.Function1;
import scala.Tuple3;
import scala.collection.Seq;
import scala.runtime.AbstractFunction1;

/**
 * The names of the full-text functions in sessions. Functions of the user that have one of these
 * names go before them.
 */
public final class FullTextFunctions {
  private static final List<String> NAMES =
      List.of(
          "match", "match_any", "match_phrase", "match_prefix", "match_fuzzy", FullTextCall.SCORE);

  private FullTextFunctions() {}

  /** Lets sessions have the functions that start with these extensions. */
  public static void inject(SparkSessionExtensions registry) {
    for (String each : NAMES) {
      registry.injectFunction(new Tuple3<>(new FunctionIdentifier(each), info(each), made(each)));
    }
  }

  /** Gives a running session the functions, unless it has others of the name. */
  public static void register(SparkSession session) {
    FunctionRegistry functions = session.sessionState().functionRegistry();
    for (String each : NAMES) {
      FunctionIdentifier name = SparkLine.registered(each);
      if (!functions.functionExists(name)) {
        functions.registerFunction(name, info(each), made(each));
      }
    }
  }

  private static ExpressionInfo info(String name) {
    return new ExpressionInfo(UnboundCall.class.getName(), name);
  }

  private static Function1<Seq<Expression>, Expression> made(String name) {
    return new AbstractFunction1<>() {
      @Override
      public Expression apply(Seq<Expression> arguments) {
        SessionCatalog catalog = SparkSession.active().sessionState().catalog();
        FunctionIdentifier function = new FunctionIdentifier(name);
        return catalog.isPersistentFunction(function)
            ? SparkLine.call(catalog, function, arguments)
            : new UnboundCall(name, arguments);
      }
    };
  }
}
