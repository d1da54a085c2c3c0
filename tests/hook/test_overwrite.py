"""mode("overwrite") removes .hoodie with the index: it is detected, and restored or reported."""

from pathlib import Path

from hudi_index_service import IndexHook, open_table
from hudi_index_service.config import Settings
from hudi_index_service.hook.table_keys import INDEX_NAME
from hudi_index_service.hook.table_upkeep import TableUpkeep
from tests.hook.callbacks import INLINE_CLUSTERING, MessageTable
from tests.hudi_tables import write
from tests.indexed import indexed

KEYS = {
    "hoodie.index.columns": "sender",
    "hoodie.datasource.write.commitmeta.key.prefix": "hoodie.index.",
}


def overwrite(table: MessageTable, more: dict[str, str] | None = None) -> None:
    write(table.rows(), table.path, table.options | (more or {}), mode="overwrite")


def index_names(path: Path) -> list[str]:
    return [each.name for each in open_table(path).indexes()]


def test_hook_restores_the_index_from_the_keys_of_the_write(message_table, caplog):
    table = message_table()
    with IndexHook([table.path], wait=120) as hook:
        table.write(hook.write_options(table.path, KEYS))
        open_table(table.path).create_index("by_hand", ["ts"])
        table.write(hook.write_options(table.path, KEYS))

        overwrite(table, hook.write_options(table.path, KEYS | INLINE_CLUSTERING))

        assert index_names(table.path) == [INDEX_NAME]
        assert open_table(table.path).status()[0].covered == 1

    # An index that no keys define is named, with the command that creates it again.
    assert caplog.text.count("TABLE_OVERWRITTEN") == 1
    assert "its index definitions by_hand and their entries are gone" in caplog.text
    assert f"hudi-index create '{table.path}' by_hand 'ts'" in caplog.text


def test_keys_are_remembered_across_restarts(message_table, tmp_path, caplog):
    table, settings = message_table(), Settings(state_folder=tmp_path / "state")
    table.write()
    with IndexHook([table.path], settings=settings, wait=120) as hook:
        secret = {"hoodie.some.password": "do-not-keep-me"}
        own = {"hoodie.datasource.write.commitmeta.key.prefix": "_"}  # no keys in the timeline
        table.write(hook.write_options(table.path, KEYS | own | secret))

    overwrite(table, INLINE_CLUSTERING)  # by a writer without keys
    with TableUpkeep(table.path, settings=settings) as upkeep:
        build = upkeep.run()

    assert index_names(table.path) == [INDEX_NAME]
    assert len(build.built) == 1
    assert "Its hoodie.index.* keys define its index again" in caplog.text
    folders = [settings.state_folder, settings.state_folder / "tables"]
    assert [oct(folder.stat().st_mode)[-3:] for folder in folders] == ["700", "700"]
    (file,) = folders[1].iterdir()
    assert oct(file.stat().st_mode)[-3:] == "600"
    assert "do-not-keep-me" not in file.read_text()


def test_overwrite_without_keys_is_reported_once_and_no_index_is_created(message_table, caplog):
    table = message_table()
    open_table(table.path).create_index("by_hand", ["sender"])
    with TableUpkeep(table.path) as upkeep:
        upkeep.run()
        overwrite(table)
        upkeep.run()
        upkeep.run()

    assert caplog.text.count("TABLE_OVERWRITTEN") == 1
    assert index_names(table.path) == []


def test_open_table_reports_the_overwrite_and_scans(message_table, caplog):
    table = message_table()
    opened = indexed(table.path, ["sender"])
    assert opened.scan("sender = 'User3'", use_index="require").count() == 20

    overwrite(table)

    assert opened.scan("sender = 'User3'").count() == 20
    assert opened.indexes() == ()
    assert caplog.text.count("TABLE_OVERWRITTEN") == 1


def test_truncating_the_table_is_reported_as_an_overwrite(spark, message_table, caplog):
    table = message_table()
    table.write()
    opened = indexed(table.path, ["sender"], name="by_hand")
    spark.sql(f"CREATE TABLE truncated USING hudi LOCATION '{table.path}'")
    try:
        with TableUpkeep(table.path) as upkeep:
            upkeep.run()
            spark.sql("INSERT OVERWRITE truncated SELECT * FROM truncated")
            spark.sql("DELETE FROM truncated")
            assert len(opened.indexes()) == 1
            spark.sql("TRUNCATE TABLE truncated")
            upkeep.run()
            assert opened.indexes() == ()
    finally:
        spark.sql("DROP TABLE truncated")

    assert f"hudi-index create '{table.path}' by_hand 'sender'" in caplog.text


def test_dropped_or_deleted_definitions_are_not_reported_as_overwrite(golden, tmp_path, caplog):
    path = golden("messages_of_users").put(tmp_path / "messages", "written")
    opened = open_table(path)
    opened.create_index("dropped", ["sender"])
    opened.create_index("removed", ["ts"])
    with TableUpkeep(path) as upkeep:
        upkeep.run()
        opened.indexes()
        open_table(path).drop_index("dropped")
        definition = path / ".hoodie/.index/_service/definitions/removed-0001.json"
        definition.unlink()
        upkeep.run()
        assert opened.indexes() == ()

    assert "TABLE_OVERWRITTEN" not in caplog.text


def test_unusable_state_folder_only_affects_restarts(message_table, tmp_path, caplog):
    table = message_table()
    open_table(table.path).create_index("by_hand", ["sender"])
    blocked = tmp_path / "state"
    blocked.write_text("no folder")

    with TableUpkeep(table.path, settings=Settings(state_folder=blocked)) as upkeep:
        upkeep.run()
        overwrite(table)
        upkeep.run()  # within this process it is remembered

    assert "cannot be remembered across restarts" in caplog.text
    assert "TABLE_OVERWRITTEN" in caplog.text
