"""Reads a Hudi table with Spark's own Hudi reader, for tables that the capability gate refuses."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from hudi_index_service.arrow import rows_without_columns
from hudi_index_service.columns import with_inner
from hudi_index_service.errors import StorageFailed

HUDI_SETTINGS = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}
"""Settings of a Spark session with Hudi's bundle, from Hudi's own guide."""

# Only on this machine, in UTC.
_LOCAL_SETTINGS = {
    **HUDI_SETTINGS,
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def local_session(
    name: str, warehouse: Path, *, cores: int, memory: str, bundle: str, settings: Mapping[str, str]
) -> SparkSession:
    """A local session with Hudi, the process's only one, for the demo, tests and measurements.

    Args:
        warehouse: Folder of the tables without a path.
        memory: The JVM's memory, as Spark spells it.
        bundle: Path of Hudi's bundle.
        settings: Further settings of Spark.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session: SparkSession = (
        SparkSession.builder.master(f"local[{cores}]")
        .appName(name)
        .config("spark.jars", bundle)
        .config("spark.sql.warehouse.dir", str(warehouse))
        .config("spark.driver.memory", memory)
        .config(map={**_LOCAL_SETTINGS, **settings})
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


class SparkHudiReader:
    """Reads a Hudi table through a Spark session that has Hudi's bundle.

    Args:
        spark: The session; its settings (time zone, ANSI mode, Hudi read options) apply.
        uri: The table's base path; ``s3://`` becomes ``s3a://``, as Hadoop spells it.
        as_of: Requested time of the instant to read at (``as.of.instant``). None for the latest
            completed one, even while others are in flight: Spark refuses to travel to an instant
            that is later than one in flight.
        query_type: ``snapshot``, or ``read_optimized`` for base files alone.
    """

    def __init__(
        self,
        spark: SparkSession,
        uri: str | Path,
        *,
        as_of: str | None = None,
        query_type: str = "snapshot",
    ) -> None:
        self.spark = spark
        self.as_of = as_of
        self.query_type = query_type
        text = str(uri)
        self.uri = f"s3a://{text.removeprefix('s3://')}" if text.startswith("s3://") else text

    def read(
        self, columns: Sequence[str], where: str | Column | None = None, *, limit: int | None = None
    ) -> pa.Table:
        """The table's rows, collected on the driver.

        The values are Spark's, from its Arrow serializer: timestamps as microseconds in UTC,
        timestamps without zone as microseconds, decimals in their precision and scale. NaN, −0.0
        and NULL are preserved. Spark makes no Arrow dictionaries.

        Args: see `frame`.

        Raises:
            StorageFailed: Spark or Hudi cannot read the table or evaluate `where`; with Spark's
                message.
        """
        with self.failures_named():
            return collected(self.frame(columns, where, limit=limit))

    def batches(
        self, columns: Sequence[str], where: str | Column | None = None, *, limit: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The same rows in batches, computed on demand. The driver holds those of one Spark
        partition at a time. Executors need pyarrow. Raises the same errors as `read`."""
        if not columns:
            rows = self.count(where, limit=limit)
            yield rows_without_columns(rows)
            return
        with self.failures_named():
            frame = self.frame(columns, where, limit=limit)
            schema = _nullable_in_utc(to_arrow_schema(frame.schema))

            def serialize(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
                for batch in batches:
                    sink = pa.BufferOutputStream()
                    with pa.ipc.new_stream(sink, batch.schema) as writer:
                        writer.write_batch(batch)
                    yield pa.record_batch({"batch": [sink.getvalue().to_pybytes()]})

            row_iterator = frame.mapInArrow(serialize, "batch binary").toLocalIterator()
        while True:
            with self.failures_named():
                row = next(row_iterator, None)
                if row is None:
                    return
                batch = _cast(pa.ipc.open_stream(row["batch"]).read_next_batch(), schema)
            yield batch

    def count(self, where: str | Column | None = None, *, limit: int | None = None) -> int:
        """The number of rows that match the condition, at most `limit`. Raises StorageFailed."""
        with self.failures_named():
            return self.frame([], where, limit=limit).count()

    def frame(
        self, columns: Sequence[str], where: str | Column | None = None, *, limit: int | None = None
    ) -> DataFrame:
        """The rows as a DataFrame that is not yet evaluated.

        Args:
            columns: Column names, in the order of the result; Hudi's meta columns too.
            where: A condition, as Spark's column or in Spark SQL; None for all rows.
            limit: Maximum number of rows, in no particular order; None for all.

        Raises:
            PySparkException: the condition or the columns are invalid.
        """
        frame = self._load()
        if where is not None:
            frame = frame.where(where)
        frame = frame.select(*(_quoted(column) for column in columns))
        return frame if limit is None else frame.limit(limit)

    def schema(self) -> pa.Schema:
        """The schema of the rows, if the service itself cannot read it. Raises StorageFailed."""
        with self.failures_named():
            return _nullable_in_utc(to_arrow_schema(self._load().schema))

    def _load(self) -> DataFrame:
        # For LIKE 'prefix%', Hudi 1.2.0's column statistics skip files wrongly: rows get lost.
        reader = self.spark.read.format("hudi").option("hoodie.enable.data.skipping", "false")
        reader = reader.option("hoodie.datasource.query.type", self.query_type)
        if self.as_of is not None:
            reader = reader.option("as.of.instant", self.as_of)
        return reader.load(self.uri)

    @contextmanager
    def failures_named(self) -> Iterator[None]:
        """Converts Spark's errors within the block to StorageFailed."""
        try:
            yield
        except (PySparkException, Py4JJavaError, pa.ArrowException) as error:
            raise _read_error(self.uri, error) from error


def collected(frame: DataFrame) -> pa.Table:
    """A DataFrame's rows on the driver, in the types of `SparkHudiReader.read`."""
    schema = _nullable_in_utc(to_arrow_schema(frame.schema))
    batches = frame._collect_as_arrow()
    return pa.Table.from_batches([_cast(batch, schema) for batch in batches], schema)


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return batch.cast(schema) if schema.names else batch  # a cast to no column loses the rows


def _nullable_in_utc(schema: pa.Schema) -> pa.Schema:
    """The schema with every zoned timestamp in UTC and every field nullable. Spark labels
    timestamps with the session's time zone, which changes no value. In a NULL struct, Spark's
    non-nullable fields are NULL, which Arrow does not allow."""
    return pa.schema([_field(field) for field in schema])


def _field(field: pa.Field) -> pa.Field:
    return field.with_type(_type_in_utc(field.type)).with_nullable(True)


def _type_in_utc(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp("us", tz="UTC")
    return with_inner(kind, _field)


def _read_error(uri: str, error: Exception) -> StorageFailed:
    lines = [line.strip() for line in str(error).strip().splitlines()]
    # A failure while rows are sent comes as Java's whole stack trace; the root cause is last.
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return StorageFailed(
        f"Spark cannot read {uri}: {causes[-1] if causes else lines[0]}",
        remedy="Check the condition, and that the session has Hudi's bundle and its extensions.",
    )
