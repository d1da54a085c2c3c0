"""Keys of a commit that Hudi has archived since still say how the table is to be kept up."""

from pathlib import Path

from hudi_index_service import open_table
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import Settings
from hudi_index_service.upkeep import TableUpkeep
from hudi_index_service.upkeep.define import INDEX_NAME
from hudi_index_service.upkeep.keys_on_timeline import newest_keys
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, write
from tests.upkeep.test_archived_instants import ARCHIVE_SOON

OPTIONS = hudi_options("t", **NO_METADATA_TABLE, **ARCHIVE_SOON)
KEYS = {
    "hoodie.index.columns": "msg",
    "hoodie.index.strategy": "all",
    "hoodie.datasource.write.commitmeta.key.prefix": "hoodie.index.",
}


def write_until_the_keys_are_archived(spark, path: Path) -> None:
    """By a writer without keys."""
    with open_table(path) as table:
        while newest_keys(table.hudi_table) is not None:
            assert len(table.hudi_table.completed_instants()) < 9
            write(numbered_rows(spark, 0, 2), path, OPTIONS)


def test_keys_of_archived_commits_are_remembered(spark, tmp_path):
    path = tmp_path / "t"
    write(numbered_rows(spark, 0, 2), path, OPTIONS | KEYS)
    with TableUpkeep(path) as upkeep:
        assert len(upkeep.run().built) == 1
    write_until_the_keys_are_archived(spark, path)

    with TableUpkeep(path) as upkeep:
        build = upkeep.run()
        assert (build.strategy, len(build.built)) == (Strategy.ALL, 1)
        # They change no index any more, and bring none back.
        open_table(path).alter_index(INDEX_NAME, add=["amount"])
        upkeep.run()
        (live,) = open_table(path).indexes()
        assert [column.name for column in live.columns] == ["msg", "amount"]
    # A host without that memory does as it is told by its door.
    with TableUpkeep(path, settings=Settings(state_folder=tmp_path / "other")) as upkeep:
        assert upkeep.run().strategy is Strategy.INCREMENTAL

    write(numbered_rows(spark, 0, 2), path, OPTIONS | KEYS | {"hoodie.index.enabled": "false"})
    with TableUpkeep(path) as upkeep:
        assert upkeep.run().id == ""
        write_until_the_keys_are_archived(spark, path)
        build = upkeep.run()
    assert (build.id, build.due) == ("", ())


def test_keys_that_were_given_once_are_not_remembered_as_the_table_s(spark, tmp_path):
    path = tmp_path / "t"
    write(numbered_rows(spark, 0, 2), path, OPTIONS)
    with TableUpkeep(path, options={"hoodie.index.strategy": "all"}) as upkeep:
        assert upkeep.run().strategy is Strategy.ALL
    with TableUpkeep(path) as upkeep:
        assert upkeep.run().strategy is Strategy.INCREMENTAL
