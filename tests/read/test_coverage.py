"""The entries of a base file are looked up once, and again when anything they depend on changes."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hudi_index_service import open_table
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.metadata.documents import document_name
from hudi_index_service.index.metadata.entry import MANIFEST_STEM, Entry, EntryListing
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.table import IndexedTable
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
def looked_up(table: IndexedTable, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The base files whose entries are looked up from now on."""
    find, paths = EntryListing.find, list[str]()

    def counted(self: EntryListing, base_file: BaseFile) -> Entry:
        paths.append(base_file.path)
        return find(self, base_file)

    monkeypatch.setattr(EntryListing, "find", counted)
    return paths


def accesses(table: IndexedTable) -> list[Access]:
    """How a query would read the base files."""
    plan = table.scan(WHERE, columns=["id"]).explain().plan
    assert plan is not None
    return [each.access for each in plan.slices]


@pytest.fixture
def manifest(path: Path) -> Path:
    """The manifest of one of the entries."""
    return min(Path(path, ".hoodie/.index/lucene").rglob(document_name(MANIFEST_STEM, 1)))


def test_the_coverage_is_reused_while_nothing_changes(
    table: IndexedTable, looked_up: list[str]
) -> None:
    before = accesses(table)
    assert accesses(table) == before
    assert looked_up == []


def test_an_entry_with_truncated_data_is_no_longer_used(
    table: IndexedTable, manifest: Path, looked_up: list[str]
) -> None:
    data = next(manifest.parent.glob("*.pack"))
    data.write_bytes(data.read_bytes()[:-1])
    assert accesses(table).count(Access.SCAN) == 1
    assert len(looked_up) == 1


def test_a_deleted_entry_is_no_longer_used(
    table: IndexedTable, manifest: Path, looked_up: list[str]
) -> None:
    shutil.rmtree(manifest.parent)
    assert accesses(table).count(Access.SCAN) == 1
    assert len(looked_up) == 1


def test_a_newer_manifest_is_read_if_segments_do_not_state_an_older_one(
    path: Path, table: IndexedTable, manifest: Path, looked_up: list[str]
) -> None:
    shutil.rmtree(path / ".hoodie/.index/_service/segments")
    accesses(table)
    looked_up.clear()
    newer = json.loads(manifest.read_text()) | {"generation": 2}
    manifest.with_name(document_name(MANIFEST_STEM, 2)).write_text(json.dumps(newer))
    accesses(table)
    assert len(looked_up) == 1
    accesses(table)
    assert len(looked_up) == 1


def test_columns_without_a_definition_are_no_longer_used(
    table: IndexedTable, looked_up: list[str]
) -> None:
    for index in table.indexes():
        table.drop_index(index.name)
    table.create_index("by_name", ["name"])
    assert set(accesses(table)) == {Access.SCAN}
    assert looked_up
    looked_up.clear()
    assert set(accesses(table)) == {Access.SCAN}
    assert looked_up == []  # the reason why they are not covered is kept, too
