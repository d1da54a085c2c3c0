"""A scan as a DataFrame: read in Spark's tasks, and with a realistic size for Spark's planner."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import BuildSettings, Settings
from hudi_index_service.errors import IndexRequired
from hudi_index_service.hudi.spark import collected
from tests.hudi_tables import (
    NO_METADATA_TABLE,
    as_if_changed_on_read,
    hudi_options,
    numbered_rows,
    write,
)
from tests.indexed import indexed
from tests.read.spark_jobs import jobs_so_far
from tests.same_rows import assert_same_rows

ROWS = 20_000


@pytest.fixture(scope="module")
def path(spark, tmp_path_factory) -> Path:
    """Two partitions with a base file each, indexed by ``amount`` (three times the key)."""
    path = tmp_path_factory.mktemp("to_spark") / "table"
    options = hudi_options("t", partition_column="dt", **NO_METADATA_TABLE)
    write(numbered_rows(spark, 0, ROWS).coalesce(1), path, options, "bulk_insert")
    indexed(path, ["amount"])
    return path


@pytest.fixture
def table(path) -> Iterator[IndexedTable]:
    """The table, opened without Spark."""
    with open_table(path) as opened:
        yield opened


@pytest.fixture
def threshold(spark) -> Iterator[int]:
    """Spark broadcasts what it estimates at no more than this many bytes."""
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "100000")
    yield 100_000
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def estimate(frame: DataFrame) -> int:
    """The size that Spark's planner assumes, in bytes."""
    statistics = frame._jdf.queryExecution().optimizedPlan().stats()
    return int(statistics.sizeInBytes())


def plan(frame: DataFrame) -> str:
    """The physical plan before it runs."""
    return str(frame._jdf.queryExecution().sparkPlan().toString())


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("clustered, partitioned", "price > 1 AND part <> 'p1' OR place.zip = 7"),
        ("half covered", None),
        ("with logs, partitioned", "price > 1 AND part <> 'p1' OR place.zip = 7"),
    ],
)
def test_rows_equal_those_of_to_arrow(name, where, spark, awkward):
    table = awkward(name).table
    scan = table.scan(where)
    rows = scan.to_arrow()
    assert rows.num_rows > 0
    frame = scan.to_spark(spark)
    assert frame.columns == rows.column_names
    assert_same_rows(collected(frame), rows)
    some = table.scan(where, columns=["tags", "id"], limit=5).to_spark(spark)
    assert collected(some).num_rows == 5
    assert some.columns == ["tags", "id"]


def test_rows_without_columns(spark, table):
    assert table.scan("amount < 30", columns=[]).to_spark(spark).count() == 10


def test_the_snapshot_is_fixed_by_the_call(spark, path, tmp_path):
    copy = shutil.copytree(path, tmp_path / "table")
    frame = open_table(copy).scan("amount < 30", columns=["id", "ts"]).to_spark(spark)
    options = hudi_options("t", partition_column="dt", **NO_METADATA_TABLE)
    write(numbered_rows(spark, 0, 5, version=1).coalesce(1), copy, options)
    assert {row.ts for row in frame.collect()} == {0}
    assert open_table(copy).scan("amount < 30 AND ts = 1").to_spark(spark).count() == 5


def test_no_row_passes_through_the_driver(spark, table):
    frame = table.scan("amount >= 0", columns=["id"]).to_spark(spark)
    tree = plan(frame)
    assert "Scan ExistingRDD" in tree
    assert "LocalTableScan" not in tree
    assert frame.rdd.getNumPartitions() == 2  # one for each slice
    before = jobs_so_far(spark)
    assert frame.selectExpr("max(cast(id AS int))").first()[0] == ROWS - 1
    assert jobs_so_far(spark) - before <= 2  # the stages of one query


def test_no_matching_rows(spark, table):
    assert table.scan("amount = -1").to_spark(spark).collect() == []


@pytest.mark.parametrize("limit", [None, ROWS])
def test_a_large_result_is_never_broadcast(limit, spark, table, threshold):
    large = table.scan("amount >= 0", columns=["id", "msg"], limit=limit).to_spark(spark)
    text = sum(len(row.id) + len(row.msg) for row in large.collect())
    assert threshold < text < estimate(large) < 10 * text
    other = spark.range(10 * ROWS).selectExpr("cast(id AS string) AS id")
    joined = plan(large.join(other, "id"))
    assert "SortMergeJoin" in joined
    assert "Broadcast" not in joined
    # Nor is it after a later filter, whose effect Spark cannot know.
    assert "Broadcast" not in plan(large.where("msg > 'a'").join(other, "id"))


def test_a_small_result_is_broadcast(spark, table, threshold):
    other = spark.range(10 * ROWS).selectExpr("cast(id AS string) AS id")
    by_index = table.scan("amount BETWEEN 300 AND 600", columns=["id", "msg"])
    limited = table.scan(columns=["id", "msg"], limit=20)
    for scan in (by_index, limited):
        small = scan.to_spark(spark)
        assert 0 < estimate(small) < threshold / 5
        joined = small.join(other, "id")
        assert "BroadcastHashJoin" in plan(joined)
        assert joined.count() == scan.to_arrow().num_rows


def test_a_table_that_needs_spark_gives_sparks_dataframe(spark, path, tmp_path):
    copy = shutil.copytree(path, tmp_path / "table")
    as_if_changed_on_read(copy)
    scan = open_table(copy).scan("amount < 30", columns=["amount", "id"])  # without a session
    frame = scan.to_spark(spark)
    assert frame.columns == ["amount", "id"]
    assert sorted(row.amount for row in frame.collect()) == list(range(0, 30, 3))
    assert open_table(copy).scan("amount < 30", limit=4).to_spark(spark).count() == 4


def test_a_task_that_needs_spark_fails_with_a_remedy(spark, path, tmp_path):
    copy = shutil.copytree(path, tmp_path / "table")
    for file in copy.glob("2026-01-01/*.parquet"):
        write_broken_text(file, row=5_000)  # only Spark can evaluate a pattern on it
    settings = Settings(build=BuildSettings(batch_rows=1_000))
    where = "msg LIKE '%car _x%' OR id = '17'"
    frame = open_table(copy, settings=settings).scan(where, columns=["id"]).to_spark(spark)
    with pytest.raises(PySparkException, match="NEEDS_SPARK") as raised:
        frame.collect()
    assert "to_arrow() or to_batches() of a table that was opened with spark=" in str(raised.value)
    by_remedy = open_table(copy, spark=spark).scan(where, columns=["id"]).to_arrow()
    assert by_remedy["id"].to_pylist() == ["17"]
    # The first rows of each slice are checked beforehand, so here Spark's own reader is used.
    for file in copy.glob("*/*.parquet"):
        write_broken_text(file, row=5)
    frame = open_table(copy, settings=settings).scan(where, columns=["id"]).to_spark(spark)
    assert [row.id for row in frame.collect()] == ["17"]


def write_broken_text(file: Path, row: int) -> None:
    """Rewrites a base file with one message that is not UTF-8."""
    (file.parent / f".{file.name}.crc").unlink(
        missing_ok=True
    )  # Hadoop's checksum of the original file
    rows = pq.read_table(file)
    texts = rows["msg"].cast(pa.binary()).to_pylist()
    texts[row] = b"\xff\xfe"
    column = rows.column_names.index("msg")
    broken = pa.array(texts, pa.binary()).view(pa.string())
    metadata = pq.read_metadata(file).metadata
    pq.write_table(rows.set_column(column, "msg", broken).replace_schema_metadata(metadata), file)


def test_to_spark_requires_a_required_index(spark, path):
    scan = open_table(path).scan("id = '3'", use_index="require")
    with pytest.raises(IndexRequired):
        scan.to_spark(spark)


def test_a_file_deleted_before_tasks_read_it_is_a_clear_error(spark, path, tmp_path):
    copy = shutil.copytree(path, tmp_path / "table")
    frame = open_table(copy).scan("amount >= 0", columns=["id"]).to_spark(spark)
    for file in copy.glob("*/*.parquet"):
        file.unlink()
    with pytest.raises(PySparkException, match="SNAPSHOT_CHANGED"):
        frame.collect()


def test_timestamps_without_zone_ignore_the_session_time_zone(spark, tmp_path):
    rows = spark.range(20).selectExpr(
        "cast(id AS string) AS id", "timestamp_ntz'2024-03-10 02:30:00' AS wall", "0L AS ts"
    )
    write(rows, tmp_path, hudi_options("t", **NO_METADATA_TABLE), "insert")
    with indexed(tmp_path, ["id", "wall"]) as table:
        zone = spark.conf.get("spark.sql.session.timeZone")
        spark.conf.set(
            "spark.sql.session.timeZone", "America/New_York"
        )  # where that time does not exist
        try:
            frame = table.scan("id = '3'", columns=["id", "wall"]).to_spark(spark)
            plain = spark.read.format("hudi").load(str(tmp_path)).where("id = '3'")
            assert frame.dtypes == plain.select("id", "wall").dtypes
            assert frame.collect() == plain.select("id", "wall").collect()
        finally:
            spark.conf.set("spark.sql.session.timeZone", zone)
