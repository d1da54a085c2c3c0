package org.apache.hudi;

import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.NoopCache$;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Stands for Hudi's class of this name, of which no bundle for Spark 4 is at hand: given base files
 * of a table, under the names that the optimizer rule calls.
 */
public final class HoodieFileIndex extends InMemoryFileIndex {
  private static final Map<String, String> NO_OPTIONS = Map$.MODULE$.empty();

  private final MetaClient metaClient;

  private HoodieFileIndex(SparkSession session, List<String> files, MetaClient metaClient) {
    super(
        session,
        CollectionConverters.asScala(files.stream().map(Path::new).toList()).toList(),
        NO_OPTIONS,
        Option.empty(),
        NoopCache$.MODULE$,
        Option.empty(),
        Option.empty());
    this.metaClient = metaClient;
  }

  /** The rows of base files without partitions, as a snapshot of a table. */
  public static Dataset<Row> read(
      SparkSession session, String table, List<String> files, List<String> instants) {
    StructType schema = session.read().parquet(files.toArray(String[]::new)).schema();
    MetaClient metaClient = new MetaClient(table, new Timeline(instants));
    return session.baseRelationToDataFrame(
        new HadoopFsRelation(
            new HoodieFileIndex(session, files, metaClient),
            new StructType(),
            schema.asNullable(),
            Option.empty(),
            new ParquetFileFormat(),
            NO_OPTIONS,
            session));
  }

  public MetaClient metaClient() {
    return metaClient;
  }

  public record MetaClient(String getBasePath, Timeline getActiveTimeline) {}

  public record Timeline(List<String> getInstants) {}
}
