package hudiindex.spark.catalyst;

import hudiindex.spark.Scala;
import java.util.List;
import java.util.Objects;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeMap;
import org.apache.spark.sql.catalyst.expressions.AttributeMap$;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.AttributeSet$;
import org.apache.spark.sql.catalyst.plans.logical.ColumnStat;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils;
import scala.Option;
import scala.collection.IndexedSeq;
import scala.collection.Seq;
import scala.math.BigInt;

/**
 * Rows that an index finds. Its child is Spark's own scan, which reads them if the index cannot.
 *
 * <p>Not a UnaryNode: that would inherit the child's constraints, and Spark would drop the filter
 * above, which has to stay, since the rows may be more than those planned for.
 */
public final class Indexed extends LogicalPlan {
  private static final long serialVersionUID = 1L;

  private final LogicalPlan child;
  private final Option<LogicalPlan> keys;
  private final transient PlannedRead plannedRead;
  private final Seq<LogicalPlan> children; // Spark asks for them many times a rule

  /**
   * @param keys the values of the request's key, in one column
   */
  public Indexed(LogicalPlan child, Option<LogicalPlan> keys, PlannedRead plannedRead) {
    this.child = child;
    this.keys = keys;
    this.plannedRead = plannedRead;
    this.children = Scala.seq(keys.isEmpty() ? List.of(child) : List.of(child, keys.get()));
  }

  LogicalPlan child() {
    return child;
  }

  Option<LogicalPlan> keys() {
    return keys;
  }

  PlannedRead plannedRead() {
    return plannedRead;
  }

  @Override
  public Seq<Attribute> output() {
    return child.output();
  }

  @Override
  public Seq<LogicalPlan> children() {
    return children;
  }

  /** What Spark must not prune: the keys, and of counts every column. */
  @Override
  public AttributeSet references() {
    if (plannedRead.request().isOfCounts()) {
      return child.outputSet();
    }
    return keys.isEmpty() ? AttributeSet$.MODULE$.empty() : keys.get().outputSet();
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    Option<LogicalPlan> others = keys.isEmpty() ? keys : Option.apply(children.last());
    return new Indexed(children.head(), others, plannedRead);
  }

  @Override
  public LogicalPlan doCanonicalize() {
    Option<LogicalPlan> others = keys.isEmpty() ? keys : Option.apply(keys.get().canonicalized());
    return new Indexed(child.canonicalized(), others, plannedRead);
  }

  /**
   * Upper bounds of rows, and of bytes: by the types of the columns, or by the share of the files,
   * whichever is more, since text is longer than Spark takes it to be. Spark's own as long as it is
   * undecided who reads.
   */
  @Override
  public Statistics stats() {
    if (statsCache().isEmpty()) {
      statsCache_$eq(Option.apply(estimate())); // EXPLAIN COST shows what is there
    }
    return statsCache().get();
  }

  private Statistics estimate() {
    if (plannedRead.decision().isUndecided()) {
      return child.stats();
    }
    long rows = plannedRead.decision().rows();
    double share = rows / (double) Math.max(1, plannedRead.decision().total());
    BigInt ofFiles = BigInt.apply((long) (plannedRead.files().bytes() * Math.min(1, share)));
    AttributeMap<ColumnStat> none = AttributeMap$.MODULE$.empty();
    BigInt ofTypes = EstimationUtils.getOutputSize(output(), BigInt.apply(rows), none);
    return new Statistics(ofTypes.max(ofFiles), Option.apply(BigInt.apply(rows)), none, false);
  }

  @Override
  public String argString(int maxFields) {
    return plannedRead.shown();
  }

  @Override
  public int productArity() {
    return 3;
  }

  @Override
  public Object productElement(int place) {
    return switch (place) {
      case 0 -> child;
      case 1 -> keys;
      default -> plannedRead;
    };
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof Indexed;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Indexed that
        && that.child.equals(child)
        && that.keys.equals(keys)
        && that.plannedRead.equals(plannedRead);
  }

  @Override
  public int hashCode() {
    return Objects.hash(child, keys, plannedRead);
  }
}
