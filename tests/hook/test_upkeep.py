"""Upkeep of a table whose commits Hudi archives: what still determines it, and what a wake-up asks
of the store."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from hudi_index_service import open_table
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import Settings
from hudi_index_service.hook.table_keys import INDEX_NAME, newest_keys
from hudi_index_service.hook.table_upkeep import TableUpkeep
from hudi_index_service.index.metadata.definitions import DEFINITIONS_FOLDER
from hudi_index_service.storage.store import Storage
from tests.golden.recipes.archived import ANOTHER
from tests.golden.table import Golden, GoldenTable


def archive_the_keys(history: GoldenTable, path: Path, step: str) -> None:
    """Moves the table to a step at which its keys have left the active timeline."""
    with open_table(path) as table:
        assert newest_keys(table.hudi_table) is not None
        history.put(path, step)
        assert newest_keys(table.hudi_table) is None


def test_keys_of_archived_commits_are_remembered(golden: Golden, tmp_path: Path) -> None:
    history, path = golden("archived_keys"), tmp_path / "t"
    history.put(path, "keys")
    with TableUpkeep(path) as upkeep:
        assert len(upkeep.run().built) == 1
    archive_the_keys(history, path, "keys archived")

    with TableUpkeep(path) as upkeep:
        build = upkeep.run()
        assert (build.strategy, len(build.built)) == (Strategy.ALL, 1)
        # They no longer change an index, and do not restore one.
        open_table(path).alter_index(INDEX_NAME, add=["amount"])
        upkeep.run()
        (live,) = open_table(path).indexes()
        assert [column.name for column in live.columns] == ["msg", "amount"]
    # A host that has not stored the keys uses its own strategy.
    with TableUpkeep(path, settings=Settings(state_folder=tmp_path / "other")) as upkeep:
        assert upkeep.run().strategy is Strategy.INCREMENTAL

    history.put(path, "switched off")
    with TableUpkeep(path) as upkeep:
        assert upkeep.run().id == ""
        archive_the_keys(history, path, "switched off, archived")
        build = upkeep.run()
    assert (build.id, build.due) == ("", ())


def test_an_existing_index_with_another_name_is_used(golden: Golden, tmp_path: Path) -> None:
    path = golden("archived_keys").put(tmp_path / "t", "keys")
    open_table(path).create_index("mine", ["msg"])
    with TableUpkeep(path) as upkeep:
        upkeep.run()
    assert [each.name for each in open_table(path).indexes()] == ["mine"]


def test_enabled_false_builds_and_defines_nothing(golden: Golden, tmp_path: Path) -> None:
    path = golden("archived_keys").put(tmp_path / "t", "switched off")
    open_table(path).create_index("mine", ["amount"])
    with TableUpkeep(path) as upkeep:
        build = upkeep.run()
    assert (build.due, build.id) == ((), "")
    (status,) = open_table(path).status()
    assert (status.definition.name, status.covered) == ("mine", 0)


def test_keys_given_for_one_run_are_not_remembered(golden: Golden, tmp_path: Path) -> None:
    path = golden("two_partitions").put(tmp_path / "t", "written")
    with TableUpkeep(path, options={"hoodie.index.strategy": "all"}) as upkeep:
        assert upkeep.run().strategy is Strategy.ALL
    with TableUpkeep(path) as upkeep:
        assert upkeep.run().strategy is Strategy.INCREMENTAL


def test_a_wake_up_lists_the_definitions_once_for_its_keys(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = golden("archived_keys").put(tmp_path / "t", "keys")
    listings: list[str] = []
    listed = Storage.files

    def files(storage: Storage, folder: str, *arguments: Any) -> Iterable[Any]:
        listings.append(folder)
        return listed(storage, folder, *arguments)

    def listings_of(work: Any) -> int:
        before = listings.count(DEFINITIONS_FOLDER)
        work()
        return listings.count(DEFINITIONS_FOLDER) - before

    with TableUpkeep(path) as upkeep:
        upkeep.run()
        monkeypatch.setattr(Storage, "files", files)
        # Is the table another one? What is defined?
        assert listings_of(upkeep.define) == 2
        # What is required?
        assert listings_of(upkeep.table.build) == 1


@pytest.mark.parametrize("name", ["archived_in_version_6", "archived"])
def test_an_archived_instant_is_known(golden: Golden, tmp_path: Path, name: str) -> None:
    history = golden(name)
    path = history.put(tmp_path, "one commit")
    with open_table(path) as table:
        (first,) = table.hudi_table.completed_instants()
        assert table.hudi_table.ever_completed(first.requested)
        history.put(path, "two commits")
        _, second = table.hudi_table.completed_instants()
        history.put(path, "archived")
        assert first not in table.hudi_table.completed_instants()
        assert table.hudi_table.ever_completed(first.requested)
        assert not table.hudi_table.ever_completed(ANOTHER)
        # Between the two writes, which are more than a millisecond apart.
        assert not table.hudi_table.ever_completed(str(int(second.requested) - 1))
