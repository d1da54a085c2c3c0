"""The entries of a base file are looked up once, and again when anything they depend on changes."""

import json
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import pytest

from hudi_index_service import open_table
from hudi_index_service.index.metadata.documents import document_name
from hudi_index_service.index.metadata.entry import MANIFEST_STEM, EntryListing
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.table import IndexedTable
from tests.read.damage import delete_entry, truncate

WHERE = "amount > 100"


@pytest.fixture
def table(copied) -> Iterator[IndexedTable]:
    """The table, with a query planned."""
    with open_table(copied) as opened:
        assert set(accesses(opened)) == {Access.INDEX}
        yield opened


@pytest.fixture
def looked_up(table, recorded) -> list[str]:
    """The base files whose entries are looked up from now on."""
    return recorded(EntryListing, "find", lambda self, base_file: base_file.path)


def accesses(table: IndexedTable) -> list[Access]:
    """How a query would read the base files."""
    plan = table.scan(WHERE, columns=["id"]).explain().plan
    return [each.access for each in plan.slices]


@pytest.fixture
def manifest(copied) -> Path:
    """The manifest of one of the entries."""
    return min(Path(copied, ".hoodie/.index/lucene").rglob(document_name(MANIFEST_STEM, 1)))


def test_the_coverage_is_reused_while_nothing_changes(table, looked_up):
    before = accesses(table)
    assert accesses(table) == before
    assert looked_up == []


@pytest.mark.parametrize("change", [truncate, delete_entry])
def test_an_entry_that_is_cut_off_or_deleted_is_no_longer_used(table, manifest, looked_up, change):
    change(next(manifest.parent.glob("*.pack")))
    assert accesses(table).count(Access.SCAN) == 1
    assert len(looked_up) == 1


def test_a_newer_manifest_is_read_if_segments_do_not_state_an_older_one(
    copied, table, manifest, looked_up
):
    rmtree(copied / ".hoodie/.index/_service/segments")
    accesses(table)
    looked_up.clear()
    newer = json.loads(manifest.read_text()) | {"generation": 2}
    manifest.with_name(document_name(MANIFEST_STEM, 2)).write_text(json.dumps(newer))
    accesses(table)
    assert len(looked_up) == 1
    accesses(table)
    assert len(looked_up) == 1


def test_columns_without_a_definition_are_no_longer_used(table, looked_up):
    for index in table.indexes():
        table.drop_index(index.name)
    table.create_index("by_name", ["name"])
    assert set(accesses(table)) == {Access.SCAN}
    assert looked_up
    looked_up.clear()
    assert set(accesses(table)) == {Access.SCAN}
    assert looked_up == []  # the reason why they are not covered is kept, too
