package hudiindex.spark.source;

import java.util.Optional;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/** What has become of an index statement. */
public sealed interface Outcome {
  /** It has run, with these rows as its result. */
  record Frame(Dataset<Row> rows) implements Outcome {}

  /**
   * It has to be run by the parser before that of the service, which is Hudi's.
   *
   * @param otherwise the error if it fails there, too; empty for the error that it fails with
   */
  record LeftToHudi(Optional<StatementFailed> otherwise) implements Outcome {}
}
