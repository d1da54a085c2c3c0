"""What is removed from the index is removed from HBase too: with its base file, with a newer
generation, with a dropped index; and nothing else is. Failed removals are reported and retried."""

import shutil
from pathlib import Path

import pytest

from hudi_index_hbase.store import EntryKeys
from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import Settings
from tests.golden.recipes.services import PERSON
from tests.golden.table import Golden
from tests.hbase.conftest import Cells, Open, in_hbase
from tests.ports import free_port

COLUMNS = ["name", "amount"]


def entries_in(cells: Cells, table: IndexedTable) -> set[str]:
    """The data files of the table's entries that HBase lists; each must have leaves."""
    found = cells.all()
    listed = {
        key[18:].decode() for key, row in found.items() if row.get(b"i:uri") == table.uri.encode()
    }
    prefixes = {path: EntryKeys.of(table.uri, path).prefix for path in listed}
    for path, prefix in prefixes.items():
        assert any(key.startswith(prefix) for key in found), f"{path} has no leaf"
    return listed


def data_files(table: IndexedTable) -> set[str]:
    """The data files of the table's index."""
    root = Path(table.uri)
    return {str(path.relative_to(root)) for path in (root / ".hoodie/.index/hbase").rglob("*.pack")}


def test_clean_removes_superseded_generations_only(open_copy: Open, cells: Cells) -> None:
    other = in_hbase(open_copy("mor"), COLUMNS)
    table = in_hbase(open_copy("cow"), COLUMNS)
    first = entries_in(cells, table)
    assert first == data_files(table)
    assert len(first) == 3
    table.alter_index("all_columns", add=["price"])
    table.refresh("all_columns").raise_for_failures()
    assert len(entries_in(cells, table)) == 6
    before = cells.all()

    going = [each.path for each in table.clean().removals if "/hbase/" in each.path]
    assert not [path for path in going if "_service" not in path], "readers may still use them"
    assert cells.all() == before
    table.clean(dry_run=True, grace_seconds=0)
    assert cells.all() == before
    table.clean(grace_seconds=0)

    second = entries_in(cells, table)
    assert second == data_files(table)
    assert len(second) == 3
    assert not second & first
    after = cells.all()
    gone = before.keys() - after.keys()
    prefixes = tuple(EntryKeys.of(table.uri, path).prefix for path in first)
    assert all(
        key.startswith(prefixes) or before[key].get(b"i:uri") == table.uri.encode() for key in gone
    )
    assert not [key for key in after if key.startswith(prefixes)]
    assert {key: before[key] for key in after} == after
    assert entries_in(cells, other) == data_files(other)
    for each in (table, other):
        assert each.verify().problems == ()


def test_purged_index_leaves_no_cells(open_copy: Open, cells: Cells) -> None:
    other = in_hbase(open_copy("mor"), COLUMNS)
    others = cells.all()
    table = in_hbase(open_copy("cow"), COLUMNS)
    assert len(cells.all()) > len(others)
    table.drop_index("all_columns", purge=True)
    assert cells.all() == others
    assert other.verify().problems == ()


def test_purged_column_leaves_no_cells(open_copy: Open, cells: Cells) -> None:
    table = in_hbase(open_copy("cow"), COLUMNS)
    whole = cells.all()
    table.drop_index(columns=["name"], purge=True)
    assert entries_in(cells, table) == data_files(table)
    assert len(data_files(table)) == 3
    assert not cells.all().keys() & whole.keys()
    assert table.scan("amount = 300", use_index="require").count() == 1


def test_cleaning_a_copied_table_removes_nothing_of_the_original(
    open_copy: Open, cells: Cells, settings: Settings, tmp_path: Path
) -> None:
    table = in_hbase(open_copy("cow"), COLUMNS)
    before = cells.all()
    copy = shutil.copytree(table.uri, tmp_path / "copy")
    with open_table(copy, settings=settings) as copied:
        assert copied.scan("amount = 300").count() == 1
        copied.clean(grace_seconds=0)
        copied.drop_index("all_columns", purge=True)
    assert cells.all() == before
    assert table.scan("amount = 300", use_index="require").count() == 1


def test_failed_removal_is_reported_and_retried_by_the_next_clean(
    open_copy: Open,
    cells: Cells,
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = in_hbase(open_copy("cow"), COLUMNS)
    stored = data_files(table)
    table.drop_index("all_columns")
    unreachable = settings.hbase.model_copy(
        update={"attempts": 2, "backoff_seconds": 0.01, "port": free_port()}
    )
    cleaning = open_copy("cow", hbase=unreachable).clean(grace_seconds=0)
    assert cleaning.unremoved
    assert all("HBase at 127" in each.reason for each in cleaning.unremoved)
    assert "HBase at 127.0.0.1" in caplog.text
    assert entries_in(cells, table) == stored

    cleaning = table.clean(grace_seconds=0)
    assert cleaning.unremoved == ()
    assert cells.all() == {}
    assert table.clean(grace_seconds=0).removals == ()


def test_clean_leaves_no_cell_of_an_erased_person(
    golden: Golden, tmp_path: Path, settings: Settings, cells: Cells
) -> None:
    path = golden("person_erased").put(tmp_path / "table", "written")
    with open_table(path, settings=settings) as table:
        in_hbase(table, ["name", "account"])
        old = data_files(table)
        assert table.scan(f"name = '{PERSON}'", use_index="require").count() == 1
    golden("person_erased").put(path, "cleaned")
    with open_table(path, settings=settings) as table:
        # The entries are within the grace period, which does not apply: the base file is gone.
        table.clean()
        assert data_files(table) == entries_in(cells, table) == set()
        assert cells.all() == {}
        table.build(strategy="all").raise_for_failures()
        assert not data_files(table) & old
        assert table.scan(f"name = '{PERSON}'").count() == 0
        assert table.scan("name = 'Person 8'", use_index="require").count() == 1
        assert table.verify().problems == ()


@pytest.mark.parametrize("purge", [False, True])
def test_cells_of_a_killed_build_are_removed_after_the_grace_period_or_by_a_purge(
    open_copy: Open, cells: Cells, purge: bool
) -> None:
    table = in_hbase(open_copy("cow"), COLUMNS)
    stored = cells.all()
    # As if the builders had died before publishing.
    for path in Path(table.uri, ".hoodie/.index/hbase").rglob("*"):
        if path.is_file():
            path.unlink()
    table.clean(grace_seconds=3600)
    assert cells.all() == stored != {}, "a builder may be about to publish them"
    if purge:
        table.drop_index("all_columns", purge=True)
    else:
        table.clean(grace_seconds=0)
    assert cells.all() == {}
