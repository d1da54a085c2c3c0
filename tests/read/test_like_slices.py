"""Many similar base files: what the first ones show decides how the others are read."""

from typing import Any

import pytest

from hudi_index_service import IndexedTable
from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.base_file import file_scan
from hudi_index_service.read.scan import Scan
from hudi_index_service.read.slices import base_rows
from hudi_index_service.read.statistics import SliceStatistics
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write
from tests.indexed import indexed

pytestmark = pytest.mark.fast

FILES, ROWS = 10, 12_000


@pytest.fixture(scope="module")
def table(spark, tmp_path_factory) -> IndexedTable:
    """Base files, each with its own `kind`; the other columns are similar in all of them."""
    path = tmp_path_factory.mktemp("like") / "table"
    rows = spark.range(0, FILES * ROWS, 1, FILES).selectExpr(
        "cast(id AS string) AS id",
        f"concat('kind', cast(id AS int) div {ROWS}) AS kind",
        f"pmod(id * 7919, {ROWS}) AS number",
        "sha2(cast(id AS string), 256) AS text",
        "cast(0 AS bigint) AS ts",
    )
    options = hudi_options("t", **NO_METADATA_TABLE)
    write(rows, path, options | {"hoodie.parquet.page.size": "4096"}, "bulk_insert")
    # Sequentially, so that the order of the slices is known.
    return indexed(
        path,
        ["kind", "number", "text"],
        name="all",
        settings=Settings(read=ReadSettings(parallelism=1)),
    )


def slices(scan: Scan) -> list[SliceStatistics]:
    assert scan.statistics is not None
    return scan.statistics.slices


def run_and_compare(table: IndexedTable, where: str, **how: Any) -> Scan:
    """Runs the query and checks that it has the rows of a scan."""
    scan = table.scan(where, columns=["id"], **how)
    found, by_scan = scan.to_arrow(), table.scan(where, columns=["id"], use_index="never")
    assert found.sort_by("id").equals(by_scan.to_arrow().sort_by("id"))
    return scan


def test_a_required_index_is_looked_up_in_every_slice(table):
    scan = run_and_compare(
        table, f"number < {ROWS * 4 // 5} OR text LIKE 'ab%'", use_index="require"
    )
    assert {each.access for each in slices(scan)} == {Access.INDEX}


def test_every_slice_is_looked_up_if_few_rows_match(table):
    assert all(each.lookup_ms > 0 for each in slices(run_and_compare(table, "number IN (5, 77)")))


def test_rows_guessed_to_be_few_are_read_by_page(table):
    """However many pages these are: the matching texts are only guessed, and the rows with the
    numbers are spread over the whole file."""
    numbers = ", ".join(str(number * 120) for number in range(100))
    read = slices(run_and_compare(table, f"number IN ({numbers}) OR text LIKE '%abcd%'"))
    assert {each.access for each in read} == {Access.INDEX}


def test_a_scan_after_a_look_up_does_not_reopen_the_file(table, recorded):
    where = f"number < {ROWS * 4 // 5} OR text LIKE 'ab%'"
    table.scan(where, use_index="require").to_arrow()  # every entry is open now
    opened = recorded(file_scan, "open_parquet", lambda storage, path, *_: path)
    parsed = recorded(base_rows, "own_footer", lambda storage, base_file: base_file.path)
    table.scan(where).to_arrow()
    assert parsed == []
    table.scan(where, use_index="never").to_arrow()
    assert len(parsed) == FILES
    assert opened == []


def test_count_is_planned_with_only_the_predicates_columns(table):
    scan = table.scan("number >= 0 AND ts = 0")
    counted, planned = scan.planned(counting=True).plan, scan.planned().plan
    assert counted.needed.names == ["number", "ts"]
    assert planned.needed is not None
    assert len(planned.needed) > 5
    assert scan.count() == FILES * ROWS
