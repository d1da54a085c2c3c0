"""Results in batches: memory stays bounded, and a limit ends the reading where it is reached."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.statistics import ReadStatistics, SliceStatistics
from hudi_index_service.table.spark import SparkHudiReader
from tests.hudi_tables import NO_METADATA_TABLE, as_if_changed_on_read, hudi_options, write
from tests.same_rows import assert_same_rows

ROWS = 12_000
# Pages of about a hundred rows, so that there are many in a small file.
SMALL_PAGES = {**NO_METADATA_TABLE, "hoodie.parquet.page.size": "512"}


@pytest.fixture(scope="module")
def path(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions with a base file each; ``colour`` and ``size`` are indexed."""
    path = tmp_path_factory.mktemp("batches") / "table"
    rows = spark.range(0, ROWS, 1, 1).selectExpr(
        "cast(id AS string) AS id",
        "sha2(cast(id AS string), 256) AS msg",
        "if(id % 8 < 2, 'red', 'blue') AS colour",
        "cast(id % 1000 AS int) AS size",
        "1L AS ts",
        "concat('p', id % 2) AS part",
    )
    options = hudi_options("batches", partition_column="part", **SMALL_PAGES)
    write(rows, path, options, "bulk_insert")
    table = open_table(path)
    table.create_index("by_colour", ["colour", "size"])
    table.build(strategy="all").raise_for_failures()
    return path


@pytest.fixture
def table(path: Path) -> Iterator[IndexedTable]:
    """The table, of which rows are always read by their pages."""
    settings = Settings(read=ReadSettings(scan_fraction=1))
    with open_table(path, settings=settings) as opened:
        yield opened


@pytest.fixture
def refused(spark: SparkSession, path: Path, tmp_path: Path) -> IndexedTable:
    """A copy that is Spark's to read, as if its schema had been changed on read."""
    copy = tmp_path / "table"
    shutil.copytree(path, copy)
    as_if_changed_on_read(copy)
    return open_table(copy, spark=spark)


def read(statistics: ReadStatistics | None) -> ReadStatistics:
    """What the last run read."""
    assert statistics is not None
    return statistics


def begun(statistics: ReadStatistics | None) -> list[SliceStatistics]:
    """The slices of which the last run read anything."""
    return [each for each in read(statistics).slices if each.rows_checked]


def test_batches_are_read_as_they_are_taken(table: IndexedTable) -> None:
    for where in ("colour = 'red'", None):
        scan = table.scan(where)
        batches = scan.to_batches()
        first = next(batches)
        assert len(begun(scan.statistics)) == 1
        rest = list(batches)
        assert len(begun(scan.statistics)) == 2
        assert_same_rows(pa.Table.from_batches([first, *rest]), table.scan(where).to_arrow())


def test_a_limit_by_index_reads_the_pages_of_so_many_rows(table: IndexedTable) -> None:
    everything = table.scan("colour = 'red'", columns=["id", "msg"])
    assert everything.to_arrow().num_rows == ROWS / 4
    for found in ("to_arrow", "to_batches"):
        scan = table.scan("colour = 'red'", columns=["id", "msg"], limit=3)
        rows = getattr(scan, found)()
        assert sum(batch.num_rows for batch in (rows if found == "to_batches" else [rows])) == 3
        (only,) = begun(scan.statistics)
        assert only.access is Access.INDEX
        assert only.rows_checked == 3
        # Three neighbouring rows lie in one page of each column: msg, id and the checked colour.
        assert only.pages == 3 < read(everything.statistics).pages


def test_a_limit_goes_on_where_the_residual_keeps_too_few(table: IndexedTable) -> None:
    where = "colour = 'red' AND msg < '4'"  # nothing narrows msg: a quarter of the red ones
    scan = table.scan(where, columns=["id"], limit=20)
    assert scan.to_arrow().num_rows == 20
    (only,) = begun(scan.statistics)
    assert 20 < only.rows_checked < ROWS / 8
    expected = table.scan(where, columns=["id"]).to_arrow().num_rows
    over = table.scan(where, columns=["id"], limit=ROWS)
    assert over.to_arrow().num_rows == expected
    assert len(begun(over.statistics)) == 2


def test_a_limit_by_scan_reads_no_further_batch(table: IndexedTable) -> None:
    scan = table.scan("size >= 0", columns=["id"], limit=3, use_index="never")
    assert scan.to_arrow().num_rows == 3
    (only,) = begun(scan.statistics)
    assert only.rows_checked < ROWS / 2  # of the one file


def test_nothing_is_read_for_a_limit_of_none(table: IndexedTable) -> None:
    scan = table.scan("colour = 'red'", limit=0)
    empty = scan.to_arrow()
    assert (empty.num_rows, empty.column_names) == (0, table.schema().names)
    assert read(scan.statistics).bytes_read == 0
    assert list(scan.to_batches()) == []


def test_existence_is_settled_by_the_first_page_that_has_a_row(table: IndexedTable) -> None:
    scan = table.scan("colour = 'red' AND msg < 'g'")
    assert scan.exists()
    (only,) = begun(scan.statistics)
    assert only.rows_checked == 1


def test_rows_without_columns_are_counted(table: IndexedTable, refused: IndexedTable) -> None:
    by_index, by_pages, by_scan = "size = 7", "size >= 500", "msg < '4'"
    for opened, where in (
        (table, by_index),
        (table, by_pages),
        (table, by_scan),
        (refused, by_index),
    ):
        expected = table.scan(where).count()
        assert expected > 2
        scan = opened.scan(where, columns=[])
        rows = scan.to_arrow()
        assert (rows.num_rows, rows.num_columns) == (expected, 0)
        assert sum(batch.num_rows for batch in scan.to_batches()) == expected
        assert opened.scan(where, columns=[], limit=2).to_arrow().num_rows == 2


def test_a_column_cannot_be_asked_for_twice(table: IndexedTable) -> None:
    for columns in (["id", "ID"], ["id", "msg", "id"]):
        with pytest.raises(ConfigInvalid, match="Column id is asked for twice"):
            table.scan(columns=columns)


def test_spark_sends_the_rows_that_are_asked_for(spark: SparkSession, path: Path) -> None:
    reader = SparkHudiReader(spark, path)
    assert reader.read(["id"], "colour = 'red'", limit=2).num_rows == 2
    assert [batch.num_rows for batch in reader.batches(["id"], limit=2)] == [2]
    assert reader.count("size = 7", limit=5) == 5


def test_spark_sends_batches(refused: IndexedTable) -> None:
    scan = refused.scan("colour = 'red'")
    batches = list(scan.to_batches())
    assert_same_rows(pa.Table.from_batches(batches), scan.to_arrow())
    assert scan.statistics is None
    limited = refused.scan("colour = 'red'", limit=7)
    assert limited.to_arrow().num_rows == 7
    assert sum(batch.num_rows for batch in limited.to_batches()) == 7
