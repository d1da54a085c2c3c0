package hudiindex.spark.fulltext;

import hudiindex.spark.Scala;
import hudiindex.spark.Unchecked;
import hudiindex.spark.catalyst.FullTextCall;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.types.BooleanType$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.FloatType$;
import scala.Enumeration;
import scala.collection.IndexedSeq;
import scala.collection.Seq;

/** A call of a full-text function as it is written. {@link Binding} finds out what it means. */
public final class UnboundCall extends Expression {
  private static final long serialVersionUID = 1L;

  private final String name;
  private final Seq<Expression> arguments;

  public UnboundCall(String name, Seq<Expression> arguments) {
    this.name = name;
    this.arguments = arguments;
  }

  String name() {
    return name;
  }

  boolean isSearch() {
    return !name.equals(FullTextCall.SCORE);
  }

  @Override
  public Seq<Expression> children() {
    return arguments;
  }

  @Override
  public DataType dataType() {
    return isSearch() ? BooleanType$.MODULE$ : FloatType$.MODULE$;
  }

  @Override
  public boolean nullable() {
    return true;
  }

  @Override
  public Object eval(InternalRow row) {
    throw Unchecked.thrown(refused());
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    throw Unchecked.thrown(refused());
  }

  private Exception refused() {
    return isSearch() ? Refusals.noColumn(name, arguments.head()) : Refusals.noSearch();
  }

  @Override
  public Seq<Enumeration.Value> nodePatterns() {
    return Scala.seq(List.of(TreePattern.PYTHON_UDF()));
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
    return new UnboundCall(name, children);
  }

  @Override
  public String prettyName() {
    return name;
  }

  @Override
  public String toString() {
    return Scala.list(arguments).stream()
        .map(Expression::toString)
        .collect(Collectors.joining(", ", name + "(", ")"));
  }

  @Override
  public int productArity() {
    return 2;
  }

  @Override
  public Object productElement(int place) {
    return place == 0 ? name : arguments;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof UnboundCall;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof UnboundCall that
        && that.name.equals(name)
        && that.arguments.equals(arguments);
  }

  @Override
  public int hashCode() {
    return 31 * name.hashCode() + arguments.hashCode();
  }
}
