"""One call looks up the rows of each conjunct in the open entries of all slices, with the same
result as one call per slice."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap

from hudi_index_service import open_table
from hudi_index_service.index.lucene.reader import LuceneReader, LuceneReaders
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.slices import lookups, many_entries
from hudi_index_service.read.slices.slice_entries import SliceEntries
from hudi_index_service.table import IndexedTable
from tests.golden.table import GoldenTable
from tests.indexed import indexed
from tests.same_rows import assert_same_rows

Opened = Callable[[str, list[str]], IndexedTable]


@pytest.fixture
def opened(
    golden: Callable[[str], GoldenTable], tmp_path: Path, request: pytest.FixtureRequest
) -> Opened:
    """A golden table with an index on some columns, all its entries open."""

    def opened(name: str, columns: list[str]) -> IndexedTable:
        table = open_table(golden(name).put(tmp_path / name))
        request.addfinalizer(table.close)
        indexed(table, columns)
        for column in columns:
            table.scan(f"{column} IS NOT NULL", use_index="require").row_ids()
        return table

    return opened


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many look-ups are made for many entries at once, and for single ones."""
    made: Counter[str] = Counter()
    few_rows, within = LuceneReaders.few_rows, LuceneReader._collect_within
    of_values, among = LuceneReaders.rows_of_values, LuceneReader._among

    def counting(self: LuceneReaders, *arguments: Any) -> Any:
        answers = few_rows(self, *arguments)
        made["together"] += answers is not None
        return answers

    def counting_values(self: LuceneReaders, *arguments: Any) -> Any:
        answers = of_values(self, *arguments)
        made["together"] += answers is not None
        return answers

    def counting_single(self: LuceneReader, *arguments: Any) -> Any:
        made["single"] += 1
        return within(self, *arguments)

    def counting_rows(self: LuceneReader, *arguments: Any) -> Any:
        made["single"] += 1
        return among(self, *arguments)

    monkeypatch.setattr(LuceneReaders, "few_rows", counting)
    monkeypatch.setattr(LuceneReaders, "rows_of_values", counting_values)
    monkeypatch.setattr(LuceneReader, "_collect_within", counting_single)
    monkeypatch.setattr(LuceneReader, "_among", counting_rows)
    return made


def scanned(table: IndexedTable, where: str) -> pa.Table:
    return table.scan(where, use_index="never").to_arrow()


@pytest.mark.parametrize(
    ("where", "together", "single"),
    [
        ("id = '77'", 0, 1),  # segments leave one slice
        ("id IN ('3', '77', '123')", 1, 0),
        ("amount BETWEEN 20 AND 60", 1, 0),
        ("amount >= 20 AND msg = 'Buying car 1' AND amount < 60", 2, 0),
        ("msg = 'no such message' AND amount < 60", 0, 0),  # and here none
        ("amount BETWEEN 20 AND 24 AND msg <> 'Buying car 1'", 1, 3),  # the complement of a term
        ("amount BETWEEN 20 AND 24 AND (msg = 'Buying car 1' OR id = '23')", 3, 0),
        ("amount = 22 OR amount = 57", 2, 0),
    ],
)
def test_a_query_looks_up_all_slices_together(
    opened: Opened, calls: Counter[str], where: str, together: int, single: int
) -> None:
    table = opened("hundred_base_files", ["id", "amount", "msg"])
    expected = scanned(table, where)
    calls.clear()
    rows = table.scan(where, use_index="require").to_arrow()
    assert rows.equals(expected)
    assert (calls["together"], calls["single"]) == (together, single)
    assert table.scan(where, use_index="require").count() == expected.num_rows


def test_a_slice_with_many_rows_is_looked_up_alone(
    opened: Opened, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_entries, "FEW_ROWS", 1)
    table = opened("hundred_base_files", ["amount"])
    expected = scanned(table, "amount < 10")
    calls.clear()
    rows = table.scan("amount < 10", use_index="require").to_arrow()
    assert rows.equals(expected)
    assert calls["together"] == 1
    assert calls["single"] == sum(
        len(each) > 1 for each in table.scan("amount < 10").row_ids().values()
    )


def test_partition_values_come_from_the_path(opened: Opened, calls: Counter[str]) -> None:
    table = opened("seven_partitions", ["amount"])
    for where in ("amount BETWEEN 30 AND 200 AND digit <> '1'", "amount > 30 OR digit = '2'"):
        assert table.scan(where, use_index="auto").to_arrow().equals(scanned(table, where))


def test_a_changed_data_file_answers_nothing(opened: Opened, tmp_path: Path) -> None:
    table, where = opened("hundred_base_files", ["id"]), "id IN ('3', '77', '123')"
    expected = scanned(table, where)
    (served,) = (each for each in table.scan("id = '77'").planned().plan.slices if each.entries)
    data = tmp_path / "hundred_base_files" / served.entries[0].entry.data_path
    data.write_bytes(bytes(data.stat().st_size))
    scan = table.scan(where)
    assert scan.to_arrow().equals(expected)
    assert scan.statistics is not None
    assert scan.statistics.count(Access.SCAN) >= 1


def test_after_a_failing_call_slices_are_looked_up_alone(
    opened: Opened, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, where = opened("hundred_base_files", ["id"]), "id IN ('3', '77', '123')"
    expected = scanned(table, where)
    monkeypatch.setattr(LuceneReaders, "few_rows", _failing)
    monkeypatch.setattr(LuceneReaders, "rows_of_values", _failing)
    calls.clear()
    assert table.scan(where, use_index="require").to_arrow().equals(expected)
    assert calls["single"] >= 3


def _failing(self: LuceneReaders, *arguments: Any) -> list[BitMap | None]:
    from hudi_index_service.errors import EntryInvalid

    raise EntryInvalid("One of the open indexes is damaged.")


def touched(table: IndexedTable) -> None:
    """Changes the state of each open data file, but neither its content nor its times."""
    for data in Path(table.uri, ".hoodie/.index").rglob("*.pack"):
        data.chmod(0o600)
        data.chmod(0o644)


def test_an_entry_that_changed_before_its_conjuncts_are_ordered_means_no_error(
    golden: Callable[[str], GoldenTable], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookups, "LARGE_FILE", 0)
    where = "amount >= 5 AND id IN ('7', '9')"
    with indexed(golden("four_base_files").put(tmp_path), ["id", "amount"], using="btree") as table:
        expected = scanned(table, where)
        assert table.scan(where).to_arrow().num_rows == expected.num_rows
        touched(table)
        assert_same_rows(table.scan(where).to_arrow(), expected)


def test_a_number_is_not_used_if_the_entry_changed_while_it_was_counted(
    golden: Callable[[str], GoldenTable], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = "amount >= 5 AND amount < 50"
    with indexed(golden("four_base_files").put(tmp_path), ["amount"], using="btree") as table:
        expected = scanned(table, where).num_rows
        assert table.scan(where).count() == expected

        count = SliceEntries.count

        def wrong(self: SliceEntries, leaf: Any) -> int:
            assert count(self, leaf) is not None
            touched(table)
            return 999_999

        monkeypatch.setattr(SliceEntries, "count", wrong)
        assert table.scan(where).count() == expected
