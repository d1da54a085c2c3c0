"""One call looks up the rows of each conjunct in the open entries of all slices, with the same
result as one call per slice."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.lucene.reader import LuceneReader, LuceneReaders
from hudi_index_service.read.slices import lookups, many_entries
from hudi_index_service.read.slices.slice_entries import SliceEntries
from hudi_index_service.table import IndexedTable
from tests.indexed import indexed
from tests.read.damage import touch
from tests.same_rows import assert_same_rows


@pytest.fixture
def calls(monkeypatch) -> Counter[str]:
    """How many look-ups are made for many entries at once, and for single ones."""
    made: Counter[str] = Counter()

    def recorded(owner, name, kind):
        look_up = getattr(owner, name)

        def counting(self, *arguments):
            answers = look_up(self, *arguments)
            made[kind] += kind == "single" or answers is not None
            return answers

        monkeypatch.setattr(owner, name, counting)

    recorded(LuceneReaders, "few_rows", "together")
    recorded(LuceneReaders, "rows_of_values", "together")
    recorded(LuceneReaders, "narrowed", "together")
    recorded(LuceneReader, "_collect_within", "single")
    recorded(LuceneReader, "_among", "single")
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
def test_a_query_looks_up_all_slices_together(opened, calls, where, together, single):
    table = opened("hundred_base_files", ["id", "amount", "msg"])
    expected = scanned(table, where)
    calls.clear()
    rows = table.scan(where, use_index="require").to_arrow()
    assert rows.equals(expected)
    assert (calls["together"], calls["single"]) == (together, single)
    assert table.scan(where, use_index="require").count() == expected.num_rows


def test_a_slice_with_many_rows_is_looked_up_alone(opened, calls, monkeypatch):
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


def test_after_a_failing_call_slices_are_looked_up_alone(opened, calls, monkeypatch):
    table, where = opened("hundred_base_files", ["id"]), "id IN ('3', '77', '123')"
    expected = scanned(table, where)
    monkeypatch.setattr(LuceneReaders, "few_rows", _failing)
    monkeypatch.setattr(LuceneReaders, "rows_of_values", _failing)
    calls.clear()
    assert table.scan(where, use_index="require").to_arrow().equals(expected)
    assert calls["single"] >= 3


def _failing(self: LuceneReaders, *arguments: Any) -> list[BitMap | None]:
    raise EntryInvalid("One of the open indexes is damaged.")


def touch_all(table: IndexedTable) -> None:
    for data in Path(table.uri, ".hoodie/.index").rglob("*.pack"):
        touch(data)


def test_an_entry_that_changed_before_its_conjuncts_are_ordered_means_no_error(
    golden, tmp_path, monkeypatch
):
    monkeypatch.setattr(lookups, "LARGE_FILE", 0)
    where = "amount >= 5 AND id IN ('7', '9')"
    with indexed(golden("four_base_files").put(tmp_path), ["id", "amount"], using="btree") as table:
        expected = scanned(table, where)
        assert table.scan(where).to_arrow().num_rows == expected.num_rows
        touch_all(table)
        assert_same_rows(table.scan(where).to_arrow(), expected)


def test_a_number_is_not_used_if_the_entry_changed_while_it_was_counted(
    golden, tmp_path, monkeypatch
):
    where = "amount >= 5 AND amount < 50"
    with indexed(golden("four_base_files").put(tmp_path), ["amount"], using="btree") as table:
        expected = scanned(table, where).num_rows
        assert table.scan(where).count() == expected

        count = SliceEntries.count

        def wrong(self, leaf):
            assert count(self, leaf) is not None
            touch_all(table)
            return 999_999

        monkeypatch.setattr(SliceEntries, "count", wrong)
        assert table.scan(where).count() == expected


@pytest.mark.parametrize("where", ["amount BETWEEN 20 AND 60", "amount >= 0"])
def test_the_rows_of_many_slices_come_in_batches_of_many(opened, where: str) -> None:
    table = opened("hundred_base_files", ["amount"])
    batches = list(table.scan(where).to_batches())
    assert_same_rows(pa.Table.from_batches(batches), scanned(table, where))
    files = len({name for each in batches for name in each["_hoodie_file_name"].to_pylist()})
    assert len(batches) < files / 4
    assert batches[0].num_rows <= max(len(each) for each in batches[1:]), "the first comes soon"
