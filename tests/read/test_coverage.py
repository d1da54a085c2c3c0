"""What serves a base file is found once, and anew when anything that it hangs on is another."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hudi_index_service import open_table
from hudi_index_service.documents import document_name
from hudi_index_service.index.entry import MANIFEST_STEM, Entry, EntryListing
from hudi_index_service.indexed_table import IndexedTable
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.table.protocol import BaseFile
from tests.read.conftest import Indexed

WHERE = "amount > 100"


@pytest.fixture
def path(clustered: Callable[[bool], Indexed], tmp_path: Path) -> Path:
    """A copy of a table whose base files all have an entry."""
    return Path(shutil.copytree(clustered(True).path, tmp_path / "table"))


@pytest.fixture
def table(path: Path) -> Iterator[IndexedTable]:
    """The table, with a query planned."""
    with open_table(path) as opened:
        assert set(accesses(opened)) == {Access.INDEX}
        yield opened


@pytest.fixture
def found(table: IndexedTable, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The base files whose entries are looked for from now on."""
    find, asked = EntryListing.find, list[str]()

    def counted(self: EntryListing, base_file: BaseFile) -> Entry:
        asked.append(base_file.path)
        return find(self, base_file)

    monkeypatch.setattr(EntryListing, "find", counted)
    return asked


def accesses(table: IndexedTable) -> list[Access]:
    """How a query would read the base files."""
    plan = table.scan(WHERE, columns=["id"]).explain().plan
    assert plan is not None
    return [each.access for each in plan.slices]


@pytest.fixture
def manifest(path: Path) -> Path:
    """That of one of the entries."""
    return min(Path(path, ".hoodie/.index/lucene").rglob(document_name(MANIFEST_STEM, 1)))


def test_what_served_serves_again(table: IndexedTable, found: list[str]) -> None:
    before = accesses(table)
    assert accesses(table) == before
    assert found == []


def test_an_entry_whose_data_is_cut_is_found_no_more(
    table: IndexedTable, manifest: Path, found: list[str]
) -> None:
    data = next(manifest.parent.glob("*.pack"))
    data.write_bytes(data.read_bytes()[:-1])
    assert accesses(table).count(Access.SCAN) == 1
    assert len(found) == 1


def test_an_entry_that_is_gone_is_found_no_more(
    table: IndexedTable, manifest: Path, found: list[str]
) -> None:
    shutil.rmtree(manifest.parent)
    assert accesses(table).count(Access.SCAN) == 1
    assert len(found) == 1


def test_a_newer_manifest_is_read(table: IndexedTable, manifest: Path, found: list[str]) -> None:
    newer = json.loads(manifest.read_text()) | {"generation": 2}
    manifest.with_name(document_name(MANIFEST_STEM, 2)).write_text(json.dumps(newer))
    accesses(table)
    assert len(found) == 1
    accesses(table)
    assert len(found) == 1


def test_columns_that_no_definition_asks_for_any_more_serve_no_more(
    table: IndexedTable, found: list[str]
) -> None:
    for index in table.indexes():
        table.drop_index(index.name)
    table.create_index("by_name", ["name"])
    assert set(accesses(table)) == {Access.SCAN}
    assert found
    found.clear()
    assert set(accesses(table)) == {Access.SCAN}
    assert found == []  # why they do not serve is known, too
