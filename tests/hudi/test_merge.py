"""Merged slices with log files: every data type has Spark's values."""

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import types as T

from hudi_index_service.errors import ColumnNotFound, NeedsSpark
from hudi_index_service.hudi import open_hudi_table
from hudi_index_service.hudi.spark import SparkHudiReader
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write

SCHEMA = T.StructType(
    [
        T.StructField("id", T.IntegerType(), False),
        T.StructField("ts", T.LongType(), False),
        T.StructField("flag", T.BooleanType()),
        T.StructField("int", T.IntegerType()),
        T.StructField("long", T.LongType()),
        T.StructField("float", T.FloatType()),
        T.StructField("double", T.DoubleType()),
        T.StructField("small_decimal", T.DecimalType(10, 2)),
        T.StructField("large_decimal", T.DecimalType(30, 5)),
        T.StructField("text", T.StringType()),
        T.StructField("bytes", T.BinaryType()),
        T.StructField("day", T.DateType()),
        T.StructField("moment", T.TimestampType()),
        T.StructField("tags", T.ArrayType(T.StringType())),
        T.StructField("place", T.StructType([T.StructField("city", T.StringType())])),
        T.StructField("counts", T.MapType(T.StringType(), T.IntegerType())),
    ]
)
UTC = dt.UTC


def cells(number):
    """Row `number`'s values without key and version; in a third of the rows, all are NULL."""
    if number % 3 == 2:
        return (None,) * (len(SCHEMA) - 2)
    even = number % 2 == 0
    return (
        even,
        -number,
        2**62 - number,
        math.nan if even else -0.0,
        -0.0 if even else math.nan,
        Decimal(number).scaleb(-2),
        Decimal("-1234567890123456789012345.67891") + number,
        "" if even else f"Grüße 漢字 🎈 {number}",
        b"" if even else bytes([0, 255, number % 256]),
        dt.date(1582, 10, 15) if even else dt.date(2026, 2, 28),
        dt.datetime(1901, 1, 1, 0, 0, 0, 1, UTC) if even else dt.datetime(2100, 1, 1, tzinfo=UTC),
        [] if even else ["a", "ß", ""],
        (None,) if even else ("Zürich",),
        {} if even else {"x": 1, "y": None},
    )


def frame(spark, numbers, version):
    rows = [(number, version, *cells(number + version)) for number in numbers]
    return spark.createDataFrame(rows, SCHEMA).coalesce(1)


@pytest.fixture(scope="module")
def merged_table(spark, tmp_path_factory):
    """30 rows with updates, late updates, inserts and deletes in log files."""
    path = tmp_path_factory.mktemp("merged")
    options = hudi_options("t", "MERGE_ON_READ", **NO_METADATA_TABLE)
    write(frame(spark, range(30), 1), path, options)
    write(frame(spark, range(10, 20), 3), path, options)
    write(frame(spark, range(15, 25), 2), path, options)  # 15 to 19 are older than the present rows
    write(frame(spark, range(5), 4), path, options, "delete")
    return path


def test_merged_rows_equal_sparks_at_each_instant_and_now(merged_table, check_against_spark):
    instants = open_hudi_table(merged_table).completed_instants()
    logs = [
        len(check_against_spark(merged_table, as_of).slices[0].log_files)
        for as_of in (*(instant.requested for instant in instants), None)
    ]
    assert logs == [0, 1, 2, 3, 3]


def test_columns_are_returned_as_requested_in_the_tables_types(merged_table):
    table = open_hudi_table(merged_table)
    snapshot = table.snapshot()
    (file_slice,) = snapshot.slices
    latest = {"as_of": snapshot.instant, "schema": snapshot.schema}
    columns = ["text", "_hoodie_record_key", "large_decimal", "moment"]
    batches = list(table.read_slice(file_slice, columns, **latest))
    assert batches[0].schema == pa.schema(
        [
            ("text", pa.string()),
            ("_hoodie_record_key", pa.string()),
            ("large_decimal", pa.decimal128(30, 5)),
            ("moment", pa.timestamp("us", tz="UTC")),
        ]
    )
    assert sum(batch.num_rows for batch in batches) == 25
    with pytest.raises(ColumnNotFound, match="no_such_column"):
        list(table.read_slice(file_slice, ["no_such_column"], **latest))


def test_merge_by_commit_time(spark, tmp_path, check_against_spark):
    options = hudi_options("t", "MERGE_ON_READ", ordering_column=None, **NO_METADATA_TABLE)
    write(frame(spark, range(30), 5), tmp_path, options)
    write(frame(spark, range(10), 1), tmp_path, options)
    write(frame(spark, range(5, 8), 1), tmp_path, options, "delete")
    write(frame(spark, range(6, 7), 0), tmp_path, options)
    check_against_spark(tmp_path)


def test_timestamps_without_zone_are_left_to_spark(spark, tmp_path):
    rows = frame(spark, range(3), 1).selectExpr("id", "ts", "to_timestamp_ntz(moment) wall_clock")
    options = hudi_options("t", "MERGE_ON_READ", **NO_METADATA_TABLE)
    write(rows, tmp_path, options)
    write(rows, tmp_path, options)
    table = open_hudi_table(tmp_path)
    assert table.schema().field("wall_clock").type == pa.timestamp("us")
    assert table.unsupported_feature() is None
    snapshot = table.snapshot()
    (file_slice,) = snapshot.slices
    assert len(file_slice.log_files) == 1
    with pytest.raises(NeedsSpark, match="wall_clock holds a timestamp without time zone"):
        list(table.read_slice(file_slice, ["id"], as_of=snapshot.instant, schema=snapshot.schema))
    schema = SparkHudiReader(spark, tmp_path).read(["wall_clock"]).schema
    assert schema.field("wall_clock").type == pa.timestamp("us")
