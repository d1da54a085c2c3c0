package hudiindex.spark.catalyst;

import hudiindex.spark.Scala;
import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import scala.collection.IndexedSeq;
import scala.collection.Seq;

/**
 * Spark's own plan for what an index counts, planned if it has to run after all, and then without
 * adaptive execution, which would run the exchanges of a plan among the children first.
 */
public final class FallbackExec extends SparkPlan {
  private static final long serialVersionUID = 1L;

  private final transient LogicalPlan plan;
  private final Seq<Attribute> output; // goes along with tasks
  private transient SparkPlan planned;

  public FallbackExec(LogicalPlan plan) {
    this.plan = plan;
    this.output = plan.output();
  }

  private synchronized SparkPlan planned() {
    if (planned == null) {
      planned = QueryExecution.prepareExecutedPlan(session(), plan);
    }
    return planned;
  }

  @Override
  public RDD<InternalRow> doExecute() {
    return planned().execute();
  }

  @Override
  public InternalRow[] executeCollect() {
    return planned().executeCollect();
  }

  @Override
  public InternalRow[] executeTake(int number) {
    return planned().executeTake(number);
  }

  @Override
  public InternalRow[] executeTail(int number) {
    return planned().executeTail(number);
  }

  @Override
  public String nodeName() {
    return "OtherwiseSpark";
  }

  @Override
  public String argString(int maxFields) {
    return "";
  }

  /** Shown by EXPLAIN. */
  @Override
  @SuppressWarnings({"rawtypes", "unchecked"}) // Scala's type has no equivalent
  public Seq innerChildren() {
    return Scala.seq(List.of(plan));
  }

  @Override
  public Seq<Attribute> output() {
    return output;
  }

  @Override
  public AttributeSet producedAttributes() {
    return outputSet();
  }

  @Override
  public Seq<SparkPlan> children() {
    return Scala.seq(List.of());
  }

  @Override
  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    return this;
  }

  @Override
  public SparkPlan doCanonicalize() {
    return new FallbackExec(plan.canonicalized());
  }

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int place) {
    return plan;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof FallbackExec;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof FallbackExec that && that.plan.equals(plan);
  }

  @Override
  public int hashCode() {
    return plan.hashCode();
  }
}
