"""On many base files, one call finds which slices can have matching rows by the open entries."""

import shutil
from pathlib import Path

import pytest

from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.optimizer import decide
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.scan import Scan
from hudi_index_service.read.slices.slice_entries import SliceEntries
from tests.golden.table import Golden
from tests.indexed import indexed
from tests.read.test_reader_pool import overwrite
from tests.same_rows import assert_same_rows

# The messages are 'Buying car 0' and 'Buying car 1' in each base file; an id is in one of them.
BETWEEN = "msg = 'Buying car 05'"
WHERES = [
    BETWEEN,
    "msg IN ('Buying car 05', 'Buying car 06')",
    f"{BETWEEN} OR amount = 3",
    "msg = 'Buying car 1' AND id IN ('77', '78')",
    "msg = 'Buying car 1' AND NOT amount < 190",
    "msg = 'Buying car 0' AND amount BETWEEN 20 AND 30",
    f"NOT ({BETWEEN}) AND amount = 5",
    f"{BETWEEN} AND msg LIKE 'Buying%'",
    "msg LIKE '%car 0' AND id = '12'",
    f"part = 'p003' AND {BETWEEN}",
    "match(msg, 'car') AND amount > 197",
]


@pytest.fixture(scope="module")
def built(golden: Golden, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = golden("hundred_base_files").put(tmp_path_factory.mktemp("hundred"))
    indexed(path, ["id", "amount", Column(name="msg", options={"analyzer": "standard"})]).close()
    return path


@pytest.fixture(scope="module")
def opened(built: Path) -> IndexedTable:
    """The table; all of its entries are open."""
    table = open_table(built)
    assert table.scan("msg = 'Buying car 0'", use_index="require").to_arrow().num_rows == 100
    return table


def looked_up(scan: Scan) -> int:
    """The number of slices that were looked up by themselves."""
    assert scan.statistics is not None
    return sum(each.lookup_ms > 0 for each in scan.statistics.slices)


@pytest.mark.parametrize("where", WHERES)
def test_answers_are_those_of_a_scan(where: str, opened: IndexedTable) -> None:
    scan = opened.scan(where, use_index="never")
    expected, row_ids = scan.to_arrow(), sorted(scan.row_ids())
    for use_index in ("auto", "require"):
        found = opened.scan(where, use_index=use_index)  # type: ignore[arg-type]
        assert_same_rows(found.to_arrow(), expected)
        assert found.count() == expected.num_rows
        assert found.exists() == bool(expected.num_rows)
        assert sorted(found.row_ids()) == row_ids
        assert sum(batch.num_rows for batch in found.to_batches()) == expected.num_rows


def test_slices_without_a_row_are_not_looked_up_one_by_one(opened: IndexedTable) -> None:
    scan = opened.scan(BETWEEN)
    assert scan.to_arrow().num_rows == 0
    assert looked_up(scan) == 0
    assert scan.statistics is not None
    assert scan.statistics.count(Access.SKIP) == 100


def test_few_slices_without_a_row_are_not_looked_up_one_by_one(
    opened: IndexedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decide, "ASKED_WHILE_OPEN", 101)
    monkeypatch.delattr(SliceEntries, "rows")
    scan = opened.scan(BETWEEN)
    assert scan.to_arrow().num_rows == 0
    assert scan.statistics is not None
    assert [each.candidates for each in scan.statistics.slices] == [0] * 100
    assert scan.statistics.count(Access.INDEX) == 100


def test_each_conjunct_excludes_slices(opened: IndexedTable) -> None:
    scan = opened.scan("msg = 'Buying car 1' AND match(msg, 'boat')")
    assert scan.to_arrow().num_rows == 0
    assert looked_up(scan) == 0


def test_entries_that_are_not_open_are_looked_up_one_by_one(built: Path) -> None:
    with open_table(built) as table:
        first, second = table.scan(BETWEEN), table.scan(BETWEEN)
        assert (first.count(), looked_up(first)) == (0, 100)
        assert (second.count(), looked_up(second)) == (0, 0)


def test_an_entry_that_changed_while_open_is_scanned(built: Path, tmp_path: Path) -> None:
    path = shutil.copytree(built, tmp_path / "table")
    with open_table(path) as table:
        assert table.scan(BETWEEN).count() == 0
        for data in sorted(Path(path, ".hoodie/.index").rglob("*.pack"))[:3]:
            overwrite(data)
        scan = table.scan(BETWEEN)
        assert scan.to_arrow().num_rows == 0
        assert scan.statistics is not None
        assert scan.statistics.count(Access.SCAN) == 3
        assert table.scan("msg = 'Buying car 1'").count() == 100
