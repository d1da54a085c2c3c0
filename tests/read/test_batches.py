"""Results in batches: memory stays bounded, and reading stops at the limit."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.errors import ConfigInvalid, PredicateUnsupported
from hudi_index_service.hudi.spark import SparkHudiReader
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.statistics import ReadStatistics, SliceStatistics
from tests.hudi_tables import as_if_changed_on_read
from tests.read.by_pages import BY_PAGES
from tests.same_rows import assert_same_rows

pytestmark = pytest.mark.fast

ROWS = 12_000


@pytest.fixture(scope="module")
def path(golden_index) -> Path:
    """Two partitions with a base file each; ``colour`` and ``size`` are indexed."""
    return golden_index("colours_in_two_partitions", ["colour", "size"])


@pytest.fixture
def table(path) -> Iterator[IndexedTable]:
    """The table, whose rows are always read by page."""
    with open_table(path, settings=BY_PAGES) as opened:
        yield opened


@pytest.fixture(scope="module")
def spark_only(spark, path, tmp_path_factory) -> IndexedTable:
    """A copy that only Spark can read: its schema seems to have been changed on read."""
    copy = shutil.copytree(path, tmp_path_factory.mktemp("spark_only") / "table")
    as_if_changed_on_read(copy)
    return open_table(copy, spark=spark)


def slices_read(statistics: ReadStatistics) -> list[SliceStatistics]:
    """The slices from which the last run read rows."""
    return [each for each in statistics.slices if each.rows_checked]


def test_batches_are_read_on_demand(table):
    for where in ("colour = 'red'", None):
        scan = table.scan(where)
        batches = scan.to_batches()
        first = next(batches)
        assert len(slices_read(scan.statistics)) == 1
        rest = list(batches)
        assert len(slices_read(scan.statistics)) == 2
        assert_same_rows(pa.Table.from_batches([first, *rest]), table.scan(where).to_arrow())


def test_a_limit_reads_only_the_pages_it_needs(table):
    everything = table.scan("colour = 'red'", columns=["id", "msg"])
    assert everything.to_arrow().num_rows == ROWS / 4
    for found in ("to_arrow", "to_batches"):
        scan = table.scan("colour = 'red'", columns=["id", "msg"], limit=3)
        rows = getattr(scan, found)()
        assert sum(batch.num_rows for batch in (rows if found == "to_batches" else [rows])) == 3
        (only,) = slices_read(scan.statistics)
        assert only.access is Access.INDEX
        assert only.rows_checked == 3
        # Three adjacent rows are in one page of each column: msg, id, and colour to check it.
        assert only.pages == 3 < everything.statistics.pages


def test_row_ids_are_checked_only_among_index_candidates(table, path):
    where = "size = 7 AND msg < '4'"  # no index narrows msg
    scan = table.scan(where)
    found = scan.row_ids()
    assert found == open_table(path).scan(where, use_index="never").row_ids()
    (only,) = slices_read(scan.statistics)
    assert only.access is Access.INDEX
    assert 0 < sum(map(len, found.values())) == only.rows_returned < only.rows_checked
    assert only.rows_checked == ROWS / 1000


def test_a_limit_reads_on_when_the_residual_rejects_rows(table):
    where = "colour = 'red' AND msg < '4'"  # no index narrows msg: a quarter of the red ones
    scan = table.scan(where, columns=["id"], limit=20)
    assert scan.to_arrow().num_rows == 20
    (only,) = slices_read(scan.statistics)
    assert 20 < only.rows_checked < ROWS / 8
    expected = table.scan(where, columns=["id"]).to_arrow().num_rows
    over = table.scan(where, columns=["id"], limit=ROWS)
    assert over.to_arrow().num_rows == expected
    assert len(slices_read(over.statistics)) == 2


def test_a_scan_stops_at_the_batch_that_reaches_the_limit(table):
    scan = table.scan("size >= 0", columns=["id"], limit=3, use_index="never")
    assert scan.to_arrow().num_rows == 3
    (only,) = slices_read(scan.statistics)
    assert only.rows_checked < ROWS / 2  # of the one file


def test_a_limit_of_zero_reads_nothing(table):
    scan = table.scan("colour = 'red'", limit=0)
    empty = scan.to_arrow()
    assert (empty.num_rows, empty.column_names) == (0, table.schema().names)
    assert scan.statistics.bytes_read == 0
    assert list(scan.to_batches()) == []


def test_exists_stops_at_the_first_matching_row(table):
    scan = table.scan("colour = 'red' AND msg < 'g'")
    assert scan.exists()
    (only,) = slices_read(scan.statistics)
    assert only.rows_checked == 1


def test_an_empty_column_list_keeps_the_row_count(table, spark_only):
    by_index, by_pages, by_scan = "size = 7", "size >= 500", "msg < '4'"
    for opened, where in (
        (table, by_index),
        (table, by_pages),
        (table, by_scan),
        (spark_only, by_index),
    ):
        expected = table.scan(where).count()
        assert expected > 2
        scan = opened.scan(where, columns=[])
        rows = scan.to_arrow()
        assert (rows.num_rows, rows.num_columns) == (expected, 0)
        assert sum(batch.num_rows for batch in scan.to_batches()) == expected
        assert opened.scan(where, columns=[], limit=2).to_arrow().num_rows == 2


def test_a_column_cannot_be_selected_twice(table):
    for columns in (["id", "ID"], ["id", "msg", "id"]):
        with pytest.raises(ConfigInvalid, match="Column id is named twice"):
            table.scan(columns=columns)


def test_spark_applies_the_filter_and_the_limit(spark, path):
    reader = SparkHudiReader(spark, path)
    assert reader.read(["id"], "colour = 'red'", limit=2).num_rows == 2
    assert [batch.num_rows for batch in reader.batches(["id"], limit=2)] == [2]
    assert reader.count("size = 7", limit=5) == 5


def test_spark_gets_no_text_in_which_it_would_replace_a_part(table, spark_only, spark):
    for text in ("${env:HOME}", "${spark.app.name}", "${system:user.dir}"):
        where = f"msg < '{text}'"
        assert table.scan(where).count() == 0, "the characters themselves"
        assert spark_only.scan(where).count() == 0
    reads = [
        lambda: spark_only.scan(where).to_arrow().num_rows,
        lambda: sum(each.num_rows for each in spark_only.scan(where).to_batches()),
        lambda: spark_only.scan(where).to_spark(spark).count(),
    ]
    assert [read() for read in reads] == [0, 0, 0]
    assert spark_only.scan(f"msg >= '{text}'").count() == spark_only.scan().count()
    with pytest.raises(PredicateUnsupported):  # nothing here parses this
        spark_only.scan(f"upper(msg) < '{text}'")
    assert spark_only.scan("msg < '$_env:HOME}' OR msg LIKE '$_env:HOME}'").count() == 0
