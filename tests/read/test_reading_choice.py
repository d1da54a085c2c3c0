"""Pages, whole row groups or the whole file: whichever costs least is read."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hudi_index_parquet import RowPlan

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.optimizer import decide, rules
from hudi_index_service.optimizer.cost.constants import Constants
from hudi_index_service.optimizer.decide import Reading, cheapest_reading, request_bytes
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.base_file.kept_pages import forget_pages
from hudi_index_service.read.slices import cheaper_reads, lookups
from hudi_index_service.read.statistics import SliceStatistics
from tests.same_rows import assert_same_rows

MB = 2**20
ROWS, RUN = 30_000, 300


def plan(*, pages: int, ranges: int = 10, chunks: int, total: int, row_groups: int = 1) -> RowPlan:
    return RowPlan(
        pages=ranges,
        page_bytes=pages,
        ranges=ranges,
        chunk_bytes=chunks,
        total_bytes=total,
        row_groups=row_groups,
        group_rows=1_000,
        plain_bytes=chunks,
    )


@pytest.mark.parametrize(
    ("row_plan", "remote", "reading"),
    [
        (plan(pages=1 * MB, chunks=10 * MB, total=30 * MB), False, Reading.PAGES),
        (plan(pages=9 * MB, chunks=10 * MB, total=30 * MB), False, Reading.PAGES),
        (plan(pages=19 * MB // 2, chunks=10 * MB, total=30 * MB), False, Reading.ROW_GROUPS),
        (plan(pages=29 * MB, chunks=30 * MB, total=30 * MB, row_groups=3), False, Reading.FILE),
        (plan(pages=29 * MB, chunks=30 * MB, total=40 * MB), False, Reading.ROW_GROUPS),
        # From a remote store, many small ranges take longer than one large one.
        (plan(pages=1 * MB, ranges=200, chunks=10 * MB, total=30 * MB), False, Reading.PAGES),
        (plan(pages=1 * MB, ranges=200, chunks=10 * MB, total=30 * MB), True, Reading.ROW_GROUPS),
        (plan(pages=1 * MB, ranges=200, chunks=10 * MB, total=10 * MB), True, Reading.FILE),
        (plan(pages=1 * MB, ranges=20, chunks=10 * MB, total=30 * MB), True, Reading.PAGES),
        # All pages of a small file are read sooner than its footer.
        (plan(pages=30_000, ranges=20, chunks=31_000, total=31_000), True, Reading.PAGES),
        (plan(pages=0, ranges=0, chunks=0, total=0, row_groups=0), True, Reading.PAGES),
    ],
)
def test_the_cheapest_reading_is_chosen(row_plan, remote, reading):
    settings = Settings(read=ReadSettings(scan_fraction=0.9))
    assert cheapest_reading(row_plan, settings, remote=remote) is reading
    assert request_bytes(Constants()) < MB


@pytest.mark.parametrize(
    ("rows", "reading"), [(60, Reading.PAGES), (70, Reading.FILE), (None, Reading.FILE)]
)
def test_few_rows_are_read_by_page_even_from_every_page(rows, reading):
    row_plan = plan(pages=30 * MB, chunks=30 * MB, total=30 * MB)  # of 1,000 rows
    assert cheapest_reading(row_plan, Settings(), remote=False, rows=rows) is reading


@pytest.fixture(autouse=True)
def is_no_large_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The base file is read like those of few rows, which are looked up whatever it costs."""
    for module in (decide, cheaper_reads, lookups, rules):
        monkeypatch.setattr(module, "LARGE_FILE", ROWS + 1)


@pytest.fixture(scope="module")
def table(golden_index) -> IndexedTable:
    """One base file with several row groups of several pages; `kind` is in runs."""
    return open_table(golden_index("runs_in_row_groups", ["name", "kind", "number"]))


def first_row_group_predicate(table: IndexedTable) -> tuple[str, int]:
    """A predicate for nearly all rows of the first row group and none of the others, and the number
    of those rows."""
    (base_file,) = Path(table.uri).glob("*.parquet")
    kinds = pq.read_metadata(base_file).row_group(0).num_rows // RUN
    listed = ", ".join(f"'kind{number}'" for number in range(kinds))
    return f"kind IN ({listed})", kinds * RUN


@pytest.mark.parametrize(
    ("where", "rows", "access", "note"),
    [
        ("name = 'name77'", 1, Access.INDEX, ""),
        ("kind = 'kind7'", RUN, Access.INDEX, ""),
        (None, None, Access.SCAN, "their row groups whole"),
        ("kind <> 'kind7'", ROWS - RUN, Access.SCAN, "the file whole"),
    ],
    ids=["one page", "some pages", "a row group", "the file"],
)
def test_each_reading_is_chosen_and_gives_the_same_rows(table, where, rows, access, note):
    if where is None:
        where, rows = first_row_group_predicate(table)
    scan = table.scan(where, columns=["id", "text"])
    found = scan.to_arrow()
    plain = table.scan(where, columns=["id", "text"], use_index="never")
    assert found.sort_by("id").equals(plain.to_arrow().sort_by("id"))
    assert found.num_rows == rows
    (read,) = scan.statistics.slices
    assert read.access is access
    assert note in read.note
    everything = table.scan(columns=["id", "text", "name", "kind"])
    everything.to_arrow()
    if note != "the file whole":
        assert 0 < read.bytes_read < everything.statistics.bytes_read / 2


@pytest.mark.parametrize(
    "where",
    [
        "kind <> 'kind7'",
        f"number >= 5 AND number < {ROWS - 5}",
        f"number < {ROWS - 5} AND kind <> 'kind7'",
        f"kind <> 'kind7' AND name <> 'name1' AND number > {ROWS // 100}",
    ],
)
def test_nothing_is_looked_up_when_a_scan_is_cheaper(table, where):
    scan = table.scan(where, columns=["id", "text"])
    rows = scan.to_arrow().num_rows
    assert rows == table.scan(where, use_index="never").to_arrow().num_rows > ROWS / 2
    (read,) = scan.statistics.slices
    assert read.access is Access.SCAN
    assert read.candidates is None, "the rows themselves were not looked up"
    assert read.note.startswith("at least ")
    assert read.note.endswith("reading the file whole is cheaper")
    assert read.note in str(scan.explain(analyze=True))

    required = table.scan(where, columns=["id", "text"], use_index="require")
    assert required.to_arrow().num_rows == rows
    assert required.statistics.slices[0].access is Access.INDEX
    if "id" not in where:
        assert scan.count() == rows
        assert scan.statistics.bytes_read == 0, "counting uses the index"
        assert scan.statistics.slices[0].candidates == rows


@pytest.mark.usefixtures("keeps_no_pages")
def test_half_of_the_rows_are_read_by_page_if_adjacent(table):
    half = ", ".join(f"'kind{number}'" for number in range(ROWS // RUN // 2))
    scan = table.scan(f"kind IN ({half})", columns=["id", "text"])
    assert scan.to_arrow().num_rows == ROWS // 2
    (read,) = scan.statistics.slices
    assert read.candidates == ROWS // 2
    whole = table.scan(columns=["id", "text"])
    whole.to_arrow()
    assert read.bytes_read < whole.statistics.bytes_read * 0.6


def test_a_large_file_is_scanned_where_the_row_reader_tests_the_predicate(table, monkeypatch):
    def read(where: str) -> SliceStatistics:
        scan = table.scan(where, columns=["id", "text"])
        plain = table.scan(where, columns=["id", "text"], use_index="never")
        assert_same_rows(scan.to_arrow(), plain.to_arrow())
        (only,) = scan.statistics.slices
        return only

    tenth, few = f"number < {ROWS // 10}", f"number < {ROWS // 20}"
    tested_in_python = f"{tenth} AND id RLIKE '7$'"
    assert read(tenth).candidates == ROWS // 10

    monkeypatch.setattr(decide, "LARGE_FILE", ROWS)

    assert read(tenth).candidates is None
    assert read(tenth).note.startswith(f"at least {ROWS // 10} rows match")
    assert read(few).candidates == ROWS // 20
    assert read(tested_in_python).candidates == ROWS // 10


def test_a_pattern_on_different_texts_is_scanned(table, monkeypatch):
    """To find the row of each of so many texts takes longer than to test them all; where the index
    is required, it is asked all the same."""
    for module in (cheaper_reads, lookups):
        monkeypatch.setattr(module, "LARGE_FILE", ROWS)
    for where, notes in (
        ("name LIKE '%77%'", "to look up its rows takes longer than a scan"),
        ("name LIKE '%77%' OR number = 5", "to look up its rows takes longer than a scan"),
        ("number = 77", ""),
    ):
        scan, required, plain = (
            table.scan(where, columns=["id", "text"], use_index=use_index)
            for use_index in ("auto", "require", "never")
        )
        assert_same_rows(scan.to_arrow(), plain.to_arrow())
        assert_same_rows(required.to_arrow(), plain.to_arrow())
        assert scan.count() == plain.count()
        (read,), (asked,) = scan.statistics.slices, required.statistics.slices
        assert read.note == notes, where
        assert asked.access is Access.INDEX


def test_a_column_whose_pages_are_kept_is_scanned(table, monkeypatch):
    """To test it again takes less time than to look up so many rows."""
    monkeypatch.setattr(lookups, "LARGE_FILE", ROWS)
    forget_pages()
    scan = table.scan(f"number < {ROWS // 3}", columns=["number"])
    plain = table.scan(f"number < {ROWS // 3}", columns=["number"], use_index="never")

    rows = scan.to_arrow()
    assert scan.statistics.slices[0].candidates == rows.num_rows == ROWS // 3

    for _ in range(2):  # a scan keeps pages at their second use
        assert_same_rows(plain.to_arrow(), rows)
    assert_same_rows(scan.to_arrow(), rows)
    (read,) = scan.statistics.slices
    assert (read.candidates, read.bytes_read) == (None, 0)
    assert read.note == "to look up its rows takes longer than a scan"


def test_a_file_is_scanned_if_nearly_all_rows_are_found(own_table):
    with own_table("runs_in_row_groups", ["name"]) as table:
        where = "name <> 'name77' AND text LIKE '%a%'"
        scan = table.scan(where, columns=["id"])
        assert scan.count() == table.scan(where, use_index="never").count()
        (read,) = scan.statistics.slices
        assert read.access is Access.SCAN
        assert read.note == f"{ROWS - 1} rows may match: reading the file whole is cheaper"


@pytest.mark.parametrize("where", ["number = 77", "name LIKE '%1234567%'"])
def test_only_the_entry_that_answers_is_opened(own_table, where):
    with own_table("runs_in_row_groups", ["name", "number"], using=["lucene", "btree"]) as table:
        scan = table.scan(where, columns=["id"])
        assert scan.to_arrow().num_rows == table.scan(where, use_index="never").count()
        assert scan.statistics.slices[0].opened == 1


def test_the_note_states_how_many_rows_led_to_a_scan(table):
    scan = table.scan(f"number >= {ROWS // 20}", columns=["id"])
    assert scan.to_arrow().num_rows == ROWS - ROWS // 20
    (read,) = scan.statistics.slices
    assert (
        read.note == f"at least {ROWS - ROWS // 20} rows match: reading the file whole is cheaper"
    )


def test_a_small_limit_uses_the_index(table):
    scan = table.scan("kind <> 'kind7'", columns=["id"], limit=5)
    assert scan.to_arrow().num_rows == 5
    assert scan.statistics.slices[0].access is Access.INDEX


def test_a_scan_skips_row_groups_that_cannot_match(table):
    def scanned(where):
        scan = table.scan(where, columns=["text"], use_index="never")
        rows = scan.to_arrow().num_rows
        return rows, scan.statistics.bytes_read

    _, everything = scanned(None)
    rows, some = scanned("kind = 'kind7'")
    assert rows == RUN
    assert 0 < some < everything / 2
    rows, fewer = scanned("kind = 'kind7' AND name = 'name2100'")
    assert rows == 1
    assert 0 < fewer < some
    assert some < everything / 10, "the pages of one kind are a small part of a row group"
    assert scanned("ts > 0") == (0, 0)
    assert scanned("text > 'g'") == (0, 0)
    assert scanned("ts = 0 AND text IS NULL") == (0, 0)
