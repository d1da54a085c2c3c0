"""Keys hoodie.index.* in a Hudi write config define an index and build it."""

from pathlib import Path

import pytest

from hudi_index_service import IndexHook, open_table
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.hook.table_keys import INDEX_NAME
from hudi_index_service.hook.table_upkeep import TableUpkeep
from tests.hook.callbacks import INLINE_CLUSTERING, MessageTable
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options
from tests.indexed import covered

PREFIX_OPTION = "hoodie.datasource.write.commitmeta.key.prefix"
# The keys of a user's write config, with the option that makes Hudi store them in the timeline.
KEYS = {"hoodie.index.columns": "sender", PREFIX_OPTION: "hoodie.index."}


def columns_of(path: Path, name: str = INDEX_NAME) -> dict[str, dict[str, str]] | None:
    """The columns of a live index with their options; None if there is no such index."""
    live = {each.name: each for each in open_table(path).indexes()}
    return {c.name: dict(c.options) for c in live[name].columns} if name in live else None


@pytest.fixture
def new_table(spark, tmp_path) -> MessageTable:
    """A table that its first write will create."""
    return MessageTable(spark, tmp_path / "new", hudi_options("new", **NO_METADATA_TABLE))


@pytest.mark.parametrize("prefix", [None, "_"])
def test_first_write_of_a_table_defines_and_builds_the_index(spark, new_table, prefix):
    """With another prefix the timeline does not contain the keys, but the hook received them."""
    path = new_table.path
    keys = {
        "hoodie.index.columns": "sender;id",
        "hoodie.index.wait": "120",
        **INLINE_CLUSTERING,
        **({PREFIX_OPTION: prefix} if prefix else {}),
    }

    with IndexHook([path], spark=spark) as hook:
        options = hook.write_options(path, keys)
        assert options.items() >= {**keys, PREFIX_OPTION: prefix or "hoodie.index."}.items()
        assert options["hoodie.write.commit.callback.http.url"] == f"{hook.url}?wait=120"
        assert options["hoodie.write.commit.callback.http.timeout.seconds"] == "125"
        new_table.write(options)
        assert columns_of(path) == {"sender": {}, "id": {}}
        # The clustering of this write is indexed, although the index was defined after it.
        assert covered(path) == 1


def test_changed_keys_change_the_index(new_table):
    path = new_table.path
    with TableUpkeep(path, strategy=Strategy.ALL) as upkeep:
        new_table.write(KEYS)
        upkeep.run()
        new_table.write(KEYS | {"hoodie.index.columns": "SENDER:analyzer=simple;ts"})
        upkeep.run()
        assert columns_of(path) == {"sender": {"analyzer": "simple"}, "ts": {}}
        new_table.write(KEYS | {"hoodie.index.columns": "ts"})
        upkeep.run()
        assert columns_of(path) == {"ts": {}}
        version = open_table(path).indexes()[0].version
        new_table.write(KEYS | {"hoodie.index.columns": "ts"})
        upkeep.run()
        assert open_table(path).indexes()[0].version == version
    assert covered(path) == 1


def test_manual_changes_last_until_a_later_write_has_keys(new_table):
    path = new_table.path
    with TableUpkeep(path) as upkeep:
        new_table.write(KEYS)
        upkeep.run()
        open_table(path).alter_index(INDEX_NAME, add=["ts"])
        upkeep.run()
        assert columns_of(path) == {"sender": {}, "ts": {}}
        open_table(path).drop_index(INDEX_NAME, purge=True)
        upkeep.run()
        assert columns_of(path) is None
        new_table.write()  # has no keys
        upkeep.run()
        assert columns_of(path) is None
        new_table.write(KEYS)
        upkeep.run()
        assert columns_of(path) == {"sender": {}}


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"hoodie.index.columns": "nowhere"}, "COLUMN_NOT_FOUND"),
        ({"hoodie.index.columns": "sender", "hoodie.index.types": "none"}, "INDEX_TYPE_UNKNOWN"),
        ({"hoodie.index.columns": "sender", "hoodie.index.wait": "long"}, "CONFIG_INVALID"),
        ({"hoodie.index.colums": "sender"}, "CONFIG_INVALID"),
    ],
)
def test_wrong_keys_affect_neither_the_write_nor_other_indexes(message_table, caplog, wrong, code):
    table = message_table()
    open_table(table.path).create_index("mine", ["sender"])

    with IndexHook([table.path], wait=120) as hook:
        table.write(hook.write_options(table.path, wrong | INLINE_CLUSTERING))
        assert covered(table.path) == 1

    assert code in caplog.text
    assert columns_of(table.path) is None
    assert table.spark.read.format("hudi").load(str(table.path)).count() == table.rows().count()


def test_options_without_keys_are_only_merged(tmp_path):
    with IndexHook([tmp_path]) as hook:
        merged = hook.write_options(tmp_path, {"hoodie.table.name": "t"})
        assert merged == {"hoodie.table.name": "t", **hook.write_options(tmp_path)}


def test_keys_of_the_hook_override_those_of_the_commits(new_table):
    path = new_table.path
    hook = IndexHook([path], options={"hoodie.index.columns": "ts", "hoodie.index.wait": "120"})

    with hook:
        new_table.write(KEYS | hook.write_options(path))
        assert columns_of(path) == {"ts": {}}
