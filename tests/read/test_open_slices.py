"""One call asks all open entries before their slices are planned; answers are those of a scan."""

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hudi_index_service import Column, open_table
from hudi_index_service.errors import EntryInvalid, IndexRequired
from hudi_index_service.index.lucene.reader import LuceneReaders
from hudi_index_service.index.metadata.entry import StatedGeneration
from hudi_index_service.optimizer import decide
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.coverage import Coverage
from hudi_index_service.read.planner import UseIndex
from hudi_index_service.read.slices import open_slices
from hudi_index_service.read.slices.open_slices import NO_ROW_FOUND
from hudi_index_service.read.slices.slice_entries import SliceEntries
from hudi_index_service.table import IndexedTable
from tests.indexed import indexed
from tests.read.damage import CHANGES, delete_entry, overwrite, truncate
from tests.same_rows import assert_same_rows

ONE_ROW = "id = '77'"
BETWEEN = "msg = 'Buying car 05'"


@pytest.fixture(scope="module")
def with_segments(golden_index) -> Path:
    """A table of a hundred base files of two rows, indexed."""
    message = Column(name="msg", options={"analyzer": "standard"})
    return golden_index("hundred_base_files", ["id", "amount", message], name="idx")


@pytest.fixture(scope="module")
def built(with_segments, tmp_path_factory) -> Path:
    """The same without segments, so that nothing excludes a base file."""
    path = shutil.copytree(with_segments, tmp_path_factory.mktemp("open") / "t")
    shutil.rmtree(path / ".hoodie/.index/_service/segments")
    return path


@pytest.fixture
def table(built, tmp_path) -> Iterator[IndexedTable]:
    """A copy of the table, all its entries open."""
    with open_table(shutil.copytree(built, tmp_path / "t")) as table:
        table.scan("id IS NOT NULL", use_index="require").row_ids()
        yield table


@pytest.fixture
def asked(recorded) -> list[int]:
    """The entries asked by each call."""
    return recorded(LuceneReaders, "without_rows", lambda self, leaf, among: len(among))


@pytest.fixture
def planned(recorded) -> list[int]:
    """The slices for which entries are looked for, of each plan."""

    def unplanned(self, plan, *_):
        return sum(each.access is Access.INDEX and not each.entries for each in plan.slices)

    return recorded(Coverage, "slices", unplanned)


def scanned(table: IndexedTable, where: str) -> pa.Table:
    return table.scan(where, use_index="never").to_arrow()


def pack_of(table: IndexedTable, where: str) -> Path:
    """The data file of the entry of the only slice with rows."""
    plan = table.scan(where).planned().plan
    (served,) = (each for each in plan.slices if each.entries)
    return Path(table.uri.removeprefix("file://")) / served.entries[0].entry.data_path


@pytest.mark.parametrize(
    ("where", "calls", "left"),
    [
        (ONE_ROW, [100], 1),
        ("id IN ('3', '77', 'none')", [100], 2),
        ("id = 'none'", [100], 0),
        ("amount BETWEEN 20 AND 24", [100], 3),
        ("amount >= 20 AND msg = 'Buying car 1' AND amount < 60", [100, 20], None),
        ("id = 'none' AND amount < 60", [100], 0),
        ("id = '77' OR amount = 22", [100, 99], 2),
        ("id = '77' AND id LIKE '%7%'", [100], 1),  # one look-up
        ("id = '77' AND (amount <> 3 OR msg IS NULL)", [100], 1),
        ("id LIKE '%7%'", [100], 100),  # goes through all terms
        ("id <=> NULL OR amount IS NULL", [100, 100], 0),
    ],
)
def test_only_slices_with_rows_are_planned(table, asked, planned, where, calls, left):
    expected = scanned(table, where)
    asked.clear(), planned.clear()
    assert table.scan(where).to_arrow().equals(expected)
    assert asked == calls
    if left is not None:
        assert planned == ([left] if left else [])
    assert_answers_of_a_scan(table, where)


def assert_answers_of_a_scan(
    table: IndexedTable, where: str, ways: Sequence[UseIndex] = ("auto", "require")
) -> None:
    never = table.scan(where, use_index="never")
    expected, row_ids = never.to_arrow(), never.row_ids()
    for use_index in ways:
        scan = table.scan(where, use_index=use_index)
        assert_same_rows(scan.to_arrow(), expected)
        assert scan.count() == expected.num_rows
        assert scan.exists() is (expected.num_rows > 0)
        assert scan.row_ids() == row_ids
        assert sum(each.num_rows for each in scan.to_batches()) == expected.num_rows


def test_bounds_exclude_no_slice(table):
    """The messages are 'Buying car 0' and 'Buying car 1' in each base file."""
    scan = table.scan(BETWEEN)
    assert scan.to_arrow().num_rows == 0
    assert scan.statistics.count(Access.SKIP) == 100
    for where in (
        BETWEEN,
        "msg IN ('Buying car 05', 'Buying car 06')",
        f"{BETWEEN} OR amount = 3",
        "msg = 'Buying car 1' AND NOT amount < 190",
        f"NOT ({BETWEEN}) AND amount = 5",
        f"{BETWEEN} AND msg LIKE 'Buying%'",
        "msg LIKE '%car 0' AND id = '12'",
        f"part = 'p003' AND {BETWEEN}",
        "part = 'p003' AND id = '6'",
        "part <> 'p003' AND id = '6'",
        "match(msg, 'car') AND amount > 197",
        "msg = 'Buying car 1' AND match(msg, 'boat')",
    ):
        assert_answers_of_a_scan(table, where)
    assert_answers_of_a_scan(table, "id = '77' OR part = 'p003'", ["auto"])


def test_a_slice_without_rows_is_skipped_and_explained(table):
    scan = table.scan(ONE_ROW)
    explained = scan.explain(analyze=True)
    assert "its lucene entry has no such row" in str(explained)
    rules = Counter(each.rule for each in explained.slices or ())
    assert rules[NO_ROW_FOUND] == 99
    assert (explained.files.covered, explained.uses_index) == (100, True)
    assert (explained.actual.rows_returned, explained.actual.slices["skip"]) == (1, 99)


@pytest.mark.parametrize("where", ["amount >= 0", "id LIKE '%7%'", "msg IS NOT NULL OR id = '7'"])
def test_open_entries_serve_without_a_look_at_each(with_segments, tmp_path, planned, asked, where):
    with open_table(shutil.copytree(with_segments, tmp_path / "t")) as table:
        expected = scanned(table, where)
        assert table.scan(where, use_index="require").to_arrow() == expected
        assert planned == [100]
        scan = table.scan(where, use_index="require")
        assert scan.to_arrow() == expected
        assert all(0 <= each.lookup_ms <= each.ms for each in scan.statistics.slices)
        assert planned == [100, 0]

        data = pack_of(table, ONE_ROW)
        planned.clear()
        overwrite(data)
        assert table.scan(where).to_arrow() == expected
        assert planned == [1]
        data.unlink()
        assert table.scan(where).to_arrow() == expected
        assert planned == [1, 1]

        planned.clear()
        table.create_index("another", ["part"])
        table.build(strategy="all").raise_for_failures()
        assert table.scan(where, use_index="require").to_arrow() == expected
        assert planned == [100]


def test_nothing_is_asked_for_rows_that_most_slices_have(table, asked):
    """Each slice has two rows, whose amounts differ."""
    assert table.scan("amount >= 0").count() == scanned(table, "amount >= 0").num_rows
    assert asked == []
    assert table.scan("amount >= 0 AND id = '77'").to_arrow().num_rows == 1
    assert asked == [100]


def test_an_index_that_is_yet_to_be_built_changes_nothing_for_open_entries(
    with_segments, tmp_path, planned
):
    with open_table(shutil.copytree(with_segments, tmp_path / "t")) as table:
        assert table.scan("amount >= 0", use_index="require").to_arrow().num_rows == 200
        table.create_index("another", ["part"])
        planned.clear()
        for _ in range(3):
            assert table.scan("amount >= 0", use_index="require").to_arrow().num_rows == 200
        assert planned == [100, 0, 0]


def test_a_skipped_slice_has_all_of_its_open_entries(golden, tmp_path):
    """An entry of another type that does not answer the predicate is not the reason."""
    path = golden("hundred_base_files").put(tmp_path / "t")
    with indexed(path, ["id"], using="btree") as table:
        table.create_index("text", ["msg"], using="lucene")
        table.build(strategy="all").raise_for_failures()
        shutil.rmtree(path / ".hoodie/.index/_service/segments")
        for column in ("id", "msg"):
            table.scan(f"{column} IS NOT NULL", use_index="require").row_ids()
        plan = table.scan("id = 'none'").planned().plan
        for each in plan.slices:
            assert each.rule == NO_ROW_FOUND
            assert each.reason == "its btree and lucene entry has no such row"
            assert {entry.index_type.name for entry in each.rejected_entries} == {"btree", "lucene"}


def test_few_slices_are_planned_without_asking(table, asked, monkeypatch):
    monkeypatch.setattr(decide, "ASKED_WHILE_OPEN", 101)
    assert table.scan(ONE_ROW).count() == 1
    assert asked == []
    monkeypatch.delattr(SliceEntries, "rows")  # nor are they looked up one by one
    scan = table.scan(BETWEEN)
    assert scan.to_arrow().num_rows == 0
    assert [each.candidates for each in scan.statistics.slices] == [0] * 100
    assert scan.statistics.count(Access.INDEX) == 100


def test_long_predicates_are_planned_without_asking(table, asked):
    where = " OR ".join(f"id = '{number}'" for number in range(20))
    assert table.scan(where).count() == 20
    assert asked == []


@pytest.mark.parametrize("damage", [*CHANGES, Path.unlink, delete_entry])
def test_a_changed_data_file_answers_nothing(table, asked, damage):
    wheres = [ONE_ROW, "id = 'none'", "amount BETWEEN 70 AND 90"]
    expected = [scanned(table, where) for where in wheres]
    damage(pack_of(table, ONE_ROW))
    assert [table.scan(where).to_arrow() for where in wheres] == expected
    assert [table.scan(where).to_arrow() for where in wheres] == expected
    assert asked


def test_a_data_file_that_changes_while_it_is_asked_answers_nothing(table, monkeypatch):
    expected, data = scanned(table, ONE_ROW), pack_of(table, ONE_ROW)

    def overwriting(self, leaf, among):
        overwrite(data)
        return np.ones(len(among), dtype=bool)

    monkeypatch.setattr(LuceneReaders, "without_rows", overwriting)
    assert table.scan(ONE_ROW).to_arrow() == expected


def test_after_a_failing_call_every_slice_is_planned(table, planned, monkeypatch):
    def failing(self, leaf, among):
        raise EntryInvalid("One of the open indexes is damaged.")

    monkeypatch.setattr(LuceneReaders, "without_rows", failing)
    assert table.scan(ONE_ROW).to_arrow() == scanned(table, ONE_ROW)
    assert planned == [100]


@pytest.mark.parametrize("damage", [truncate, Path.unlink, delete_entry])
def test_a_required_index_that_is_gone_is_an_error(table, damage):
    damage(pack_of(table, ONE_ROW))
    for where in (ONE_ROW, "id = 'none'"):
        with pytest.raises(IndexRequired, match="cannot be read through an index"):
            table.scan(where, use_index="require").to_arrow()


def test_an_entry_of_which_segments_state_a_newer_generation_is_not_asked(
    table, asked, monkeypatch
):
    def stated(segments, files):
        return {each.path: StatedGeneration(2, "a.segment") for each in files[:30]}

    monkeypatch.setattr(open_slices, "stated_generations", stated)
    assert table.scan(ONE_ROW).to_arrow() == scanned(table, ONE_ROW)
    assert asked == [70]


def test_a_dropped_column_answers_nothing(table, asked):
    assert table.scan(ONE_ROW).count() == 1
    asked.clear()
    table.drop_index(columns=["id"])
    assert table.scan(ONE_ROW).count() == 1
    table.drop_index("idx")
    scan = table.scan("amount = 77")
    assert scan.count() == 1
    assert asked == []
    assert scan.statistics.count(Access.SCAN) == 100
