"""Many base files that are much like each other: what some tell is used for the others."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.scan import Scan
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.table.parquet_file import open_parquet
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write

FILES, ROWS = 10, 12_000


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> IndexedTable:
    """Base files that each have a number of their own, and values that all have alike."""
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
    # One after the other: which slices come after which is told then.
    table = open_table(path, settings=Settings(read=ReadSettings(parallelism=1)))
    table.create_index("all", ["kind", "number", "text"])
    table.build(strategy="all").raise_for_failures()
    return table


def slices(scan: Scan) -> list[SliceStatistics]:
    assert scan.statistics is not None
    return scan.statistics.slices


def agreed(table: IndexedTable, where: str, **how: Any) -> Scan:
    """The query, run: it has the rows of a scan."""
    scan = table.scan(where, columns=["id"], **how)
    found, by_scan = scan.to_arrow(), table.scan(where, columns=["id"], use_index="never")
    assert found.sort_by("id").equals(by_scan.to_arrow().sort_by("id"))
    return scan


def test_not_every_slice_is_asked_in_vain(table: IndexedTable) -> None:
    read = slices(agreed(table, f"number < {ROWS * 4 // 5} OR text LIKE 'ab%'"))
    assert len(read) == FILES
    assert {each.access for each in read} == {Access.SCAN}
    asked = [each.lookup_ms > 0 for each in read]
    assert asked == [True, True, False, True, False, False, True, False, False, False]
    assert all("in files like it" in each.note for each in read if not each.lookup_ms)


def test_who_requires_the_index_asks_every_slice(table: IndexedTable) -> None:
    scan = agreed(table, f"number < {ROWS * 4 // 5} OR text LIKE 'ab%'", use_index="require")
    assert {each.access for each in slices(scan)} == {Access.INDEX}


def test_slices_of_which_few_rows_match_are_all_asked(table: IndexedTable) -> None:
    assert all(each.lookup_ms > 0 for each in slices(agreed(table, "number IN (5, 77)")))


def test_rows_that_are_few_by_the_guess_alone_are_read_by_their_pages(
    table: IndexedTable,
) -> None:
    """However many pages these are: nothing but a guess is known of the texts, and the rows with
    the numbers lie all over the file."""
    numbers = ", ".join(str(number * 120) for number in range(100))
    read = slices(agreed(table, f"number IN ({numbers}) OR text LIKE '%abcd%'"))
    assert {each.access for each in read} == {Access.INDEX}


def test_what_is_scanned_after_all_is_not_opened_anew(
    table: IndexedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def opening(storage: Any, path: str, *args: Any) -> Any:
        opened.append(Path(path).name)
        return open_parquet(storage, path, *args)

    where = f"number < {ROWS * 4 // 5} OR text LIKE 'ab%'"
    table.scan(where, use_index="require").to_arrow()  # every entry is open now
    monkeypatch.setattr("hudi_index_service.read.file_scan.open_parquet", opening)
    table.scan(where).to_arrow()
    assert opened == []
    table.scan(where, use_index="never").to_arrow()
    assert len(opened) == FILES


def test_who_counts_is_planned_with_the_columns_that_he_asks_of(table: IndexedTable) -> None:
    scan = table.scan("number >= 0 AND ts = 0")
    counted, planned = scan._execution(counting=True).plan, scan.planned().plan
    assert counted.needed is not None
    assert counted.needed.names == ["number", "ts"]
    assert planned.needed is not None
    assert len(planned.needed) > 5
    assert scan.count() == FILES * ROWS
