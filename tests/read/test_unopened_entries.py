"""The entries of a table's many small files are not opened by the first queries: a scan of such a
file takes less time. Once it has been scanned for as long as opening takes, its entry is opened.
Answers are the same."""

from collections.abc import Iterator

import pytest

from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.optimizer import decide
from hudi_index_service.optimizer.cost.constants import SCANS_FOR_OPENING
from hudi_index_service.optimizer.plan import Access
from tests.same_rows import assert_same_rows

FEW = "id IN ('3', '77', '123')"
ALL = f"id IN ({', '.join(map(repr, map(str, range(0, 200, 2))))})"


@pytest.fixture
def table(golden_index) -> Iterator[IndexedTable]:
    """A hundred base files of two rows, none of whose entries is open."""
    message = Column(name="msg", options={"analyzer": "standard"})
    settings = Settings(read=ReadSettings(page_cache_mb=0))
    with open_table(
        golden_index("hundred_base_files", ["id", "amount", message]), settings=settings
    ) as table:
        yield table


def opened(table: IndexedTable, where: str) -> tuple[int, int]:
    """The entries that a query opens, and the slices that it looks up."""
    scan = table.scan(where)
    assert_same_rows(scan.to_arrow(), table.scan(where, use_index="never").to_arrow())
    read = [each for each in scan.statistics.slices if each.access is not Access.SKIP]
    looked_up = sum(each.candidates is not None for each in read)
    return sum(each.opened for each in read), looked_up


@pytest.mark.parametrize(
    "where", [FEW, "id = '77' OR amount = 20", "amount BETWEEN 20 AND 24", "id LIKE '7%'"]
)
def test_few_slices_are_scanned(table, where):
    assert opened(table, where) == (0, 0)
    assert table.scan(where).count() == table.scan(where, use_index="never").count()
    assert table.scan(where).exists()
    assert table.scan(where, columns=["id"]).to_arrow().num_rows == table.scan(where).count()


def test_the_reason_is_in_the_statistics(table):
    scan = table.scan(FEW)
    assert scan.to_arrow().num_rows == 3
    notes = {each.note for each in scan.statistics.begun.values()}
    assert notes == {"opening its entry takes longer than a scan"}
    assert "opening its entry takes longer than a scan" in str(scan.explain(analyze=True))


def test_a_count_opens_nothing(table):
    scan = table.scan(FEW)
    assert scan.count() == 3
    assert {each.opened for each in scan.statistics.begun.values()} == {0}


@pytest.mark.parametrize(
    ("where", "options", "entries"),
    [
        (FEW, {"use_index": "require"}, 4),
        ("match(msg, 'car') AND id = '77'", {}, 1),  # the row reader knows no words
    ],
)
def test_others_are_opened(table, where, options, entries):
    scan = table.scan(where, **options)
    rows = scan.to_arrow()
    assert sum(each.opened for each in scan.statistics.slices) == entries
    if "match" not in where:
        assert_same_rows(rows, table.scan(where, use_index="never").to_arrow())


def test_entries_are_opened_once_scans_have_taken_as_long(table):
    def entries(where: str) -> int:
        scan = table.scan(where)
        assert_same_rows(scan.to_arrow(), table.scan(where, use_index="never").to_arrow())
        return sum(each.opened for each in scan.statistics.slices)

    scanned = [entries(ALL) for _ in range(SCANS_FOR_OPENING)]
    assert scanned == [0] * SCANS_FOR_OPENING
    assert entries(ALL) == 100
    assert entries(ALL) == 0


def test_a_count_scans_each_file_once(table):
    for _ in range(SCANS_FOR_OPENING):
        scan = table.scan(ALL)
        assert scan.count() == table.scan(ALL, use_index="never").count()
        assert not any(each.opened for each in scan.statistics.begun.values())


def test_an_entry_that_is_open_is_asked(table):
    assert table.scan("id = '77'", use_index="require").to_arrow().num_rows == 1
    assert opened(table, "id = '77'") == (0, 1)


def test_those_of_a_table_with_few_files_are_opened(table, monkeypatch):
    monkeypatch.setattr(decide, "ASKED_WHILE_OPEN", 101)
    assert opened(table, FEW) == (4, 4)


def test_files_with_many_matching_rows_are_scanned_without_a_look_up(table, monkeypatch):
    monkeypatch.setattr(decide, "FEW_ROWS", 0)
    assert table.scan(ALL, use_index="require").to_arrow().num_rows == 100  # opens the entries
    scan = table.scan(ALL)
    assert_same_rows(scan.to_arrow(), table.scan(ALL, use_index="never").to_arrow())
    read = scan.statistics.slices
    assert {each.access for each in read} == {Access.SCAN}
    assert {each.candidates for each in read} == {None}
    assert "many rows are expected" in read[0].note
