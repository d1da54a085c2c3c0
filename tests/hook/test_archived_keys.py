"""Keys of a commit that Hudi has since archived still determine the table's upkeep."""

from pathlib import Path

from hudi_index_service import open_table
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import Settings
from hudi_index_service.hook.table_keys import INDEX_NAME, newest_keys
from hudi_index_service.hook.table_upkeep import TableUpkeep
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


def test_keys_given_for_one_run_are_not_remembered(golden: Golden, tmp_path: Path) -> None:
    path = golden("two_partitions").put(tmp_path / "t", "written")
    with TableUpkeep(path, options={"hoodie.index.strategy": "all"}) as upkeep:
        assert upkeep.run().strategy is Strategy.ALL
    with TableUpkeep(path) as upkeep:
        assert upkeep.run().strategy is Strategy.INCREMENTAL
