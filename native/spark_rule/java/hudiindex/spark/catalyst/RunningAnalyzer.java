package hudiindex.spark.catalyst;

import hudiindex.spark.Scala;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The analyzer of a session that runs. It has the rules that were registered when the session
 * analyzed its first query; Spark has no way to add one later, unlike to the optimizer, so this
 * puts it into the analyzer's field.
 */
public final class RunningAnalyzer {
  private static final Logger LOG = LoggerFactory.getLogger(RunningAnalyzer.class);
  private static final String RULES = "extendedResolutionRules";

  private RunningAnalyzer() {}

  /**
   * Gives a session's analyzer a rule, unless it has one of this class. Returns whether it has one
   * then.
   */
  public static boolean hasAdded(SparkSession session, Rule<LogicalPlan> rule) {
    Analyzer analyzer = session.sessionState().analyzer();
    List<Rule<LogicalPlan>> rules = new ArrayList<>(Scala.list(analyzer.extendedResolutionRules()));
    if (rules.stream().anyMatch(rule.getClass()::isInstance)) {
      return true;
    }
    rules.add(rule);
    try {
      Field field = analyzer.getClass().getDeclaredField(RULES);
      field.setAccessible(true);
      field.set(analyzer, Scala.seq(rules));
      return true;
    } catch (ReflectiveOperationException | RuntimeException error) {
      LOG.warn(
          "RULE_MISSING: this session ignores the hint NO_INDEX, or has no full-text functions: {}."
              + " Sessions of newSession() know both.",
          error.toString());
      return false;
    }
  }
}
