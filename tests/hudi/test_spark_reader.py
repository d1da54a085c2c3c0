"""Spark's own Hudi reader, for tables that only Spark can read."""

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from hudi_index_service.errors import StorageFailed
from hudi_index_service.hudi import open_hudi_table
from hudi_index_service.hudi.spark import SparkHudiReader
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, write

pytestmark = pytest.mark.fast


@pytest.fixture(scope="module")
def table_path(spark, tmp_path_factory):
    path = tmp_path_factory.mktemp("spark_read")
    for version in range(2):
        rows = numbered_rows(spark, version * 10, 20, version)
        moment = F.timestamp_micros(F.col("amount") * 1_000_001)
        write(
            rows.withColumn("zero", F.lit(-0.0)).withColumn("moment", moment),
            path,
            hudi_options("t", **NO_METADATA_TABLE),
        )
    return path


def test_read_with_a_condition(spark, table_path):
    rows = SparkHudiReader(spark, table_path).read(["amount", "id"], "id = '3' or amount > 57")
    assert rows.sort_by("amount").to_pylist() == [
        {"amount": 9, "id": "3"},
        {"amount": 58, "id": "19"},
    ]


def test_read_at_an_instant(spark, table_path):
    first, _ = open_hudi_table(table_path).completed_instants()
    at_first = SparkHudiReader(spark, table_path, as_of=first.requested)
    assert at_first.read(["id"], "ts = 1").num_rows == 0
    assert SparkHudiReader(spark, table_path).read(["id"], "ts = 1").num_rows == 10


def test_types_are_sparks_and_timestamps_are_in_utc(spark, table_path):
    for zone in ("UTC", "America/New_York"):
        spark.conf.set("spark.sql.session.timeZone", zone)
        try:
            rows = SparkHudiReader(spark, table_path).read(["moment", "zero"], "id = '1'")
            none = SparkHudiReader(spark, table_path).read(["moment", "zero"], "id = 'none'")
        finally:
            spark.conf.set("spark.sql.session.timeZone", "UTC")
        assert none.num_rows == 0
        assert (
            rows.schema.types
            == none.schema.types
            == [
                pa.timestamp("us", tz="UTC"),
                pa.float64(),
            ]
        )
        assert rows["moment"].cast(pa.int64()).to_pylist() == [3_000_003]
        assert str(rows["zero"][0]) == "-0.0"


def test_errors_name_their_cause(spark, table_path, tmp_path):
    with pytest.raises(StorageFailed, match="no_such_column"):
        SparkHudiReader(spark, table_path).read(["no_such_column"])
    with pytest.raises(StorageFailed, match=str(tmp_path)):
        SparkHudiReader(spark, tmp_path).read(["id"])
