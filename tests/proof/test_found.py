"""Bugs that random tables and predicates found, each with its own test."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from hudi_index_service import open_table
from hudi_index_service.errors import TableFeatureUnsupported
from hudi_index_service.hudi.spark import SparkHudiReader
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write
from tests.indexed import indexed
from tests.same_rows import assert_same_rows

TIMES = (
    "array(timestamp_seconds(id), null)",
    "array(TIMESTAMP'9999-12-31 23:59:59.999999', timestamp_seconds(-id))",
)


def with_times(spark: SparkSession, start: int, end: int, version: int) -> DataFrame:
    """Keys [start, end) with arrays of timestamps."""
    return spark.range(start, end, 1, 1).selectExpr(
        "cast(id AS string) AS id",
        f"cast({version} AS bigint) AS ts",
        f"if(id % 5 = 0, null, if(id % 2 = 0, {TIMES[0]}, {TIMES[1]})) AS times",
    )


@pytest.mark.parametrize("version", ["6", "9"])
def test_arrays_of_timestamps_in_log_files_need_spark(
    spark: SparkSession, tmp_path: Path, version: str
) -> None:
    """hudi-rs takes the base file's zone UTC and the log file's +00:00 for two types. That used to
    be reported as a storage failure."""
    options = hudi_options(
        "t", "MERGE_ON_READ", **NO_METADATA_TABLE, **{"hoodie.write.table.version": version}
    )
    write(with_times(spark, 0, 40, 0), tmp_path, options, "bulk_insert")
    table = indexed(tmp_path, ["times"])
    reader = SparkHudiReader(spark, tmp_path)
    names = table.schema().names
    wheres = (
        "array_contains(times, TIMESTAMP'1970-01-01 00:00:04')",
        "array_contains(times, TIMESTAMP'9999-12-31 23:59:59.999999') AND id < '3'",
        "NOT array_contains(times, TIMESTAMP'9999-12-31 23:59:59.999999')",
    )
    for where in wheres:
        for use_index in ("require", "never"):
            found = table.scan(where, use_index=use_index).to_arrow()
            assert_same_rows(found, reader.read(names, where))

    write(with_times(spark, 3, 9, 1), tmp_path, options, "upsert")
    with pytest.raises(TableFeatureUnsupported, match="column 'times'"):
        open_table(tmp_path).scan(wheres[0]).to_arrow()
    with open_table(tmp_path, spark=spark) as by_spark:
        for where in wheres:
            assert_same_rows(by_spark.scan(where).to_arrow(), reader.read(names, where))
