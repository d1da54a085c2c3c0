package hudiindex.spark.catalyst;

import hudiindex.spark.Scala;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeMap;
import org.apache.spark.sql.catalyst.expressions.AttributeMap$;
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
 * <p>It is no UnaryNode, which would hand on the constraints of the child: Spark would drop the
 * filter above, which has to stay, since the rows may be more than those plannedRead for.
 */
public final class Indexed extends LogicalPlan {
  private static final long serialVersionUID = 1L;

  private final LogicalPlan child;
  private final transient PlannedRead plannedRead;

  public Indexed(LogicalPlan child, PlannedRead plannedRead) {
    this.child = child;
    this.plannedRead = plannedRead;
  }

  LogicalPlan child() {
    return child;
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
    return Scala.seq(List.of(child));
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return new Indexed(children.head(), plannedRead);
  }

  @Override
  public LogicalPlan doCanonicalize() {
    return new Indexed(child.canonicalized(), plannedRead);
  }

  /**
   * Upper bounds of rows, and of bytes: by the types of the columns, or by the share of the files,
   * whichever is more, since text is longer than Spark takes it to be.
   */
  @Override
  public Statistics stats() {
    if (statsCache().isEmpty()) {
      statsCache_$eq(Option.apply(estimate())); // EXPLAIN COST shows what is there
    }
    return statsCache().get();
  }

  private Statistics estimate() {
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
    return 2;
  }

  @Override
  public Object productElement(int place) {
    return place == 0 ? child : plannedRead;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof Indexed;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Indexed that
        && that.child.equals(child)
        && that.plannedRead.equals(plannedRead);
  }

  @Override
  public int hashCode() {
    return 31 * child.hashCode() + plannedRead.hashCode();
  }
}
