"""Base files with several row groups, read by several Spark tasks."""

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hudi_index_service import open_table
from hudi_index_service.hudi.spark import collected
from tests.hudi_tables import (
    NO_METADATA_TABLE,
    hudi_options,
    numbered_rows,
    read_rows,
    timeline_folder,
    write,
)
from tests.indexed import indexed
from tests.same_rows import assert_same_rows

ROWS = 24_000
SMALL_ROW_GROUPS = {
    "hoodie.parquet.block.size": "40000",
    "hoodie.parquet.page.size": "4000",
    **NO_METADATA_TABLE,
}
COLUMNS = ["id", "msg", "amount", "dt", "_hoodie_record_key", "_hoodie_commit_time"]
CONDITIONS = {
    "all rows": None,
    "many, by index": "amount >= 3000 AND amount <> 30000",
    "some in one row group, by index": "amount BETWEEN 30 AND 900",
    "by scan": "msg LIKE '%car 3'",
    "by either": "amount BETWEEN 6000 AND 36000 AND msg > 'Buying car 2' OR id = '7'",
    "in one partition": "dt = '2026-01-02' AND amount > 600",
    "none": "amount = -1",
}


@dataclass(frozen=True)
class Written:
    """A table in two partitions, indexed by `amount`.

    Attributes:
        instant: One of its instants.
        rows: All rows, and for each of the `CONDITIONS` whether it holds, by Spark.
    """

    path: Path
    instant: str
    rows: pa.Table


def build(path: Path) -> None:
    indexed(path, ["amount"], name="by_amount", using="btree").close()


def row_groups(path: Path) -> dict[str, int]:
    """The number of row groups of each base file, by partition."""
    return {
        file.parent.name: pq.read_metadata(file).num_row_groups for file in path.glob("*/*.parquet")
    }


def all_rows(spark: SparkSession, path: Path) -> pa.Table:
    """See `Written`."""
    conditions = (f"{where or 'true'} AS `{name}`" for name, where in CONDITIONS.items())
    return collected(read_rows(spark, path).selectExpr(*COLUMNS, *conditions))


def instants(path: Path) -> list[str]:
    return sorted({each.name[:17] for each in timeline_folder(path).glob("[0-9]*_*commit")})


@pytest.fixture(scope="module")
def copy_on_write(spark, tmp_path_factory) -> Written:
    """One of the partitions has each row twice, and a second commit rewrote the other."""
    path = tmp_path_factory.mktemp("shared") / "table"
    options = hudi_options("t", partition_column="dt", **SMALL_ROW_GROUPS)
    rows = numbered_rows(spark, 0, ROWS)
    twice = rows.union(rows.where("dt = '2026-01-01'"))
    write(twice.coalesce(1).sortWithinPartitions("dt"), path, options, "bulk_insert")
    write(numbered_rows(spark, 0, 200, 1).where("dt = '2026-01-02'"), path, options)
    build(path)
    assert min(row_groups(path).values()) > 4
    return Written(path, instants(path)[0], all_rows(spark, path))


@pytest.fixture(scope="module")
def merge_on_read(spark, tmp_path_factory) -> Written:
    """One of the partitions has log files, which update and delete."""
    path = tmp_path_factory.mktemp("shared") / "merged"
    options = hudi_options("t", "MERGE_ON_READ", partition_column="dt", **SMALL_ROW_GROUPS)
    rows = numbered_rows(spark, 0, ROWS).coalesce(1).sortWithinPartitions("dt")
    write(rows, path, options, "bulk_insert")
    write(numbered_rows(spark, 0, 2_000, 1).where("dt = '2026-01-01'"), path, options)
    write(numbered_rows(spark, 500, 600, 2).where("dt = '2026-01-01'"), path, options, "delete")
    build(path)
    assert min(row_groups(path).values()) > 4
    return Written(path, instants(path)[1], all_rows(spark, path))


@pytest.fixture
def small_splits(spark) -> Iterator[None]:
    """A task reads a few row groups."""
    sizes = {"maxPartitionBytes": "20KB", "openCostInBytes": "1KB"}
    for name, size in sizes.items():
        spark.conf.set(f"spark.sql.files.{name}", size)
    yield
    for name in sizes:
        spark.conf.unset(f"spark.sql.files.{name}")


def by_task(frame: DataFrame) -> list[int]:
    """The number of rows of each task that returns any."""
    counts = frame.groupBy(F.spark_partition_id()).count().collect()
    return [row["count"] for row in counts]


def plain(spark: SparkSession, path: Path, where: str | None, **options: str) -> DataFrame:
    frame = read_rows(spark, path, **options)
    return (frame if where is None else frame.where(where)).select(COLUMNS)


@pytest.mark.usefixtures("small_splits")
@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize("name", CONDITIONS)
def test_each_row_is_returned_once(spark, request, kind, name):
    written = request.getfixturevalue(kind)
    with open_table(written.path) as table:
        frame = table.scan(CONDITIONS[name], columns=COLUMNS).to_spark(spark)
        expected = written.rows.filter(written.rows[name]).select(COLUMNS)
        assert_same_rows(collected(frame), expected)


@pytest.mark.usefixtures("small_splits")
@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
def test_as_of_an_earlier_instant(spark, request, kind):
    written = request.getfixturevalue(kind)
    where = "amount >= 300"
    with open_table(written.path) as table:
        scan = table.scan(where, columns=COLUMNS, as_of=written.instant)
        frame = scan.to_spark(spark)
        assert frame.rdd.getNumPartitions() > 2
        options = {"as.of.instant": written.instant}
        assert_same_rows(collected(frame), collected(plain(spark, written.path, where, **options)))


@pytest.mark.usefixtures("small_splits")
@pytest.mark.parametrize("use_index", ["auto", "never"])
def test_large_slices_are_read_by_several_tasks(spark, copy_on_write, use_index):
    with open_table(copy_on_write.path) as table:
        scan = table.scan("amount >= 300", columns=COLUMNS, use_index=use_index)
        frame = scan.to_spark(spark)
        assert frame.rdd.getNumPartitions() > 4, "for two base files"
        counts = by_task(frame)
        assert len(counts) > 4
        assert max(counts) < sum(counts) / 3
        few = table.scan("amount BETWEEN 30 AND 900", columns=COLUMNS, use_index=use_index)
        assert max(by_task(few.to_spark(spark))) > 100


@pytest.mark.usefixtures("small_splits")
def test_a_slice_with_log_files_is_read_by_one_task(spark, merge_on_read):
    with open_table(merge_on_read.path) as table:
        frame = table.scan(columns=COLUMNS).to_spark(spark)
        tasks = frame.select("dt", F.spark_partition_id().alias("task")).distinct().collect()
        by_partition = Counter(row.dt for row in tasks)
        assert by_partition["2026-01-01"] == 1
        assert by_partition["2026-01-02"] > 2


def test_slices_are_not_split_without_need(spark, copy_on_write):
    with open_table(copy_on_write.path) as table:
        assert table.scan(columns=COLUMNS).to_spark(spark).rdd.getNumPartitions() == 2


@pytest.mark.usefixtures("small_splits")
def test_a_limit_reads_whole_slices(spark, copy_on_write):
    with open_table(copy_on_write.path) as table:
        frame = table.scan("amount >= 300", columns=COLUMNS, limit=9_000).to_spark(spark)
        assert frame.count() == 9_000


@pytest.mark.usefixtures("small_splits", "keeps_no_pages")
def test_the_history_counts_a_slice_and_its_rows_once(spark, copy_on_write, own_state):
    where, sums = "amount >= 300", []
    for by_tasks in (True, False):
        with open_table(copy_on_write.path) as table:
            for _ in range(3):
                # Not `amount`: the driver tests it before it reads rows, and keeps no pages here.
                scan = table.scan(where, columns=["id"])
                scan.to_spark(spark).collect() if by_tasks else scan.to_arrow()
            (shape,) = table.history()
            assert shape.queries == 3
            sums.append({name: shape.mean(name) for name in ("rows", "bytes", "scan_bytes")})
            table.forget_history()
    assert sums[0]["rows"] == pytest.approx(sums[1]["rows"], rel=1e-3)
    read = [each["bytes"] + each["scan_bytes"] for each in sums]
    # A dictionary may be read for each part; what a worker has kept of earlier tasks is not.
    assert 0 < read[0] <= 1.1 * read[1]


@pytest.mark.usefixtures("small_splits")
def test_a_damaged_entry_is_scanned_by_each_task(spark, copy_on_write, tmp_path):
    copy = shutil.copytree(copy_on_write.path, tmp_path / "table")
    where = "amount >= 300"
    with open_table(copy) as table:
        frame = table.scan(where, columns=COLUMNS).to_spark(spark)
        for data in (copy / ".hoodie" / ".index").rglob("*.pack"):
            data.write_bytes(b"\0" * data.stat().st_size)
        assert_same_rows(collected(frame), collected(plain(spark, copy, where)))
        again = table.scan(where, columns=COLUMNS).to_spark(spark)
        assert again.rdd.getNumPartitions() > 4
        assert_same_rows(collected(again), collected(plain(spark, copy, where)))


@pytest.mark.usefixtures("small_splits")
def test_values_stored_beside_the_index_are_read_in_parts(spark, copy_on_write, tmp_path):
    copy = shutil.copytree(copy_on_write.path, tmp_path / "table")
    where = "amount BETWEEN 6000 AND 36000"
    with open_table(copy) as table:
        table.drop_index("by_amount", purge=True)
        indexed(table, ["amount"], include=["id", "msg", "dt"], using="btree")
        columns = ["id", "msg", "amount", "dt"]
        frame = table.scan(where, columns=columns).to_spark(spark)
        assert frame.rdd.getNumPartitions() > 2, "for two base files"
        plain_rows = collected(plain(spark, copy, where).select(columns))
        assert_same_rows(collected(frame), plain_rows)
