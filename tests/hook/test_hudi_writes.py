"""Real Hudi writes call back, and entries are built; no failure affects the writes."""

import json
import sys

import pytest

from hudi_index_service import IndexHook, open_table
from hudi_index_service.config import HookSettings, Settings
from hudi_index_service.errors import CallbackRefused, ConfigInvalid
from hudi_index_service.hook.write_options import CALLBACK_PATH, callback_options
from tests.hook.callbacks import (
    INLINE_CLUSTERING,
    INLINE_COMPACTION,
    SECRET,
    BlockedBuild,
    post,
    service_callback_of,
)
from tests.hudi_tables import run_compaction, write
from tests.indexed import covered

LONG_ENOUGH = 120


def spark_count(table) -> int:
    """The table's number of rows, counted by Spark."""
    return table.spark.read.format("hudi").load(str(table.path)).count()


def test_clustering_write_returns_after_its_entries_are_built(spark, message_table):
    table = message_table(index="sender")

    with IndexHook([table.path], spark=spark, wait=LONG_ENOUGH) as hook:
        options = hook.write_options(table.path)
        table.write(INLINE_CLUSTERING | options)
        # Still inside the context: the callback built it, not the end of the context.
        assert covered(table.path) == 1

    found = open_table(table.path).scan("sender = 'User3'", columns=["id"], use_index="require")
    assert sorted(found.to_arrow()["id"].to_pylist(), key=int) == [
        str(i) for i in range(3, 200, 10)
    ]
    secret = options["hoodie.write.commit.callback.http.api.key"].encode()
    files = [file for file in table.path.rglob("*") if file.is_file()]
    assert [file for file in files if secret in file.read_bytes()] == [], "it is not stored"


def test_compacting_write_of_a_merge_on_read_table_is_indexed(message_table):
    table = message_table(table_type="MERGE_ON_READ", index="sender")

    with IndexHook([table.path], wait=LONG_ENOUGH) as hook:  # builds with local threads
        table.write(INLINE_COMPACTION | hook.write_options(table.path))
        assert covered(table.path) == 1


@pytest.mark.parametrize("calls_back", [False, True])
def test_an_asynchronous_service_is_built_by_its_callback_or_at_the_next_wake_up(
    spark, message_table, calls_back
):
    """It commits by itself, and Hudi 1.2.0 sends no callback."""
    table = message_table(table_type="MERGE_ON_READ", index="sender")
    table.write()

    with IndexHook([table.path], wait=LONG_ENOUGH) as hook:
        assert len(run_compaction(spark, table.path)) == 1
        assert covered(table.path) == 0
        options = hook.write_options(table.path)
        if calls_back:
            url = options["hoodie.write.commit.callback.http.url"]
            secret = options["hoodie.write.commit.callback.http.api.key"]
            _, answer = post(url, service_callback_of(table.path, "commit"), secret=secret)
            assert answer == {"status": "built", "built": 1, "failed": 0}
        else:
            write(table.rows().limit(0), table.path, table.options | options)
        assert covered(table.path) == 1
    assert [each.state for each in open_table(table.path).builds()] == ["finished"]


def test_only_a_write_with_the_options_is_built_before_the_context_ends(message_table):
    table = message_table(index="sender")
    with IndexHook([table.path]):
        table.write(INLINE_CLUSTERING)
    assert covered(table.path) == 0
    assert [entry.base_file.file_id for entry in open_table(table.path).build(dry_run=True).due]

    with IndexHook([table.path]) as hook:
        table.write(INLINE_CLUSTERING | hook.write_options(table.path))
    assert covered(table.path) == 1


def test_write_returns_while_its_build_hangs(message_table, listening):
    table, wait = message_table(), 2.0
    table.write()
    with BlockedBuild() as build:
        listener = listening(build, table.path, wait=wait)

        table.write(callback_options(f"{listener.url}{CALLBACK_PATH}", SECRET, wait=wait))

        assert build.begun.wait(30)
        assert table.rows().count() == spark_count(table)


def test_failing_build_affects_no_write_and_is_retried_after_the_next(message_table, caplog):
    table = message_table(index="sender")
    builds = table.path / ".hoodie" / ".index" / "_service" / "builds"
    builds.write_text("A file stands where the build's record has to go.")
    short_backoff = Settings(hook=HookSettings(backoff_seconds=0.01))

    with IndexHook([table.path], wait=LONG_ENOUGH, settings=short_backoff) as hook:
        table.write(INLINE_CLUSTERING | hook.write_options(table.path))
        assert f"{table.path}: build failed: " in caplog.text
        assert "STORAGE_FAILED" in caplog.text
        assert table.rows().count() == spark_count(table)

        builds.unlink()
        write(table.rows().limit(0), table.path, table.options | hook.write_options(table.path))
        assert covered(table.path) == 1


def test_index_of_an_unknown_type_affects_neither_write_nor_other_index(message_table):
    table = message_table(index="sender")
    open_table(table.path).create_index("broken", ["ts"])
    definition = table.path / ".hoodie/.index/_service/definitions/broken-0001.json"
    definition.write_text(definition.read_text().replace('"lucene"', '"gone"'))
    assert '"gone"' in definition.read_text()

    with IndexHook([table.path], wait=LONG_ENOUGH) as hook:
        table.write(INLINE_CLUSTERING | hook.write_options(table.path))
        assert covered(table.path, "by_sender") == 1

    assert table.rows().count() == spark_count(table)


def test_write_succeeds_without_a_listener(message_table):
    table = message_table()
    with IndexHook([table.path]) as hook:
        options = hook.write_options(table.path)

    table.write(options)

    assert table.rows().count() == spark_count(table)


def test_two_hooks_in_one_process_serve_their_own_tables(message_table):
    first, second = (message_table(name, index="sender") for name in ("first", "second"))

    with (
        IndexHook([first.path], wait=LONG_ENOUGH) as one,
        IndexHook([second.path], wait=LONG_ENOUGH) as two,
    ):
        assert one.url != two.url
        with pytest.raises(CallbackRefused):
            one.write_options(second.path)
        first.write(INLINE_CLUSTERING | one.write_options(first.path))
        second.write(INLINE_CLUSTERING | two.write_options(second.path))
        assert (covered(first.path), covered(second.path)) == (1, 1)


def test_hook_cleans_after_building_if_configured(message_table):
    table = message_table(index="sender")
    orphan = table.path / ".hoodie/.index/lucene/20000101000000000/gone-0/x/manifest-0001.json"
    orphan.parent.mkdir(parents=True)
    orphan.write_text(json.dumps({}))
    grace = Settings(clean={"grace_seconds": 0})

    with IndexHook([table.path], wait=LONG_ENOUGH, clean=True, settings=grace) as hook:
        table.write(INLINE_CLUSTERING | hook.write_options(table.path))
        assert not orphan.exists()
        assert covered(table.path) == 1


def test_write_options_contain_url_secret_and_timeout(tmp_path):
    settings = Settings(hook=HookSettings(secret="the configured one"))

    with IndexHook([tmp_path], wait=1.5, settings=settings) as hook:
        assert hook.write_options(f"file:{tmp_path}/") == {
            "hoodie.write.commit.callback.on": "true",
            "hoodie.write.commit.callback.http.url": hook.url,
            "hoodie.write.commit.callback.http.api.key": "the configured one",
            "hoodie.write.commit.callback.http.timeout.seconds": "7",
        }
        assert hook.url.startswith("http://127.0.0.1:")


def test_secret_is_random_unless_configured(tmp_path):
    with IndexHook([tmp_path]) as one, IndexHook([tmp_path]) as two:
        key = "hoodie.write.commit.callback.http.api.key"
        assert one.write_options(tmp_path)[key] != two.write_options(tmp_path)[key]
        assert len(one.write_options(tmp_path)[key]) > 40


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"wait": -1}, "wait=-1 is not a number of seconds"),
        ({"wait": float("nan")}, "wait=nan is not a number of seconds"),
        ({"strategy": "some"}, "There is no strategy 'some'"),
        (
            {"settings": Settings(hook=HookSettings(secret="new\nline"))},
            "cannot be sent in a header",
        ),
    ],
)
def test_invalid_arguments_are_refused(tmp_path, arguments, message):
    with pytest.raises(ConfigInvalid, match=message):
        IndexHook([tmp_path], **arguments)


def test_address_in_use_is_reported(tmp_path):
    with IndexHook([tmp_path]) as hook:
        port = int(hook.url.split(":")[2].split("/")[0])
        same_port = Settings(hook=HookSettings(port=port))
        with pytest.raises(ConfigInvalid, match=f"cannot listen on 127.0.0.1:{port}"):
            IndexHook([tmp_path], settings=same_port).start()


def test_missing_package_extra_is_named(tmp_path, monkeypatch):
    for module in ("service", "web.application"):
        monkeypatch.delitem(sys.modules, f"hudi_index_service.fleet.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)

    with pytest.raises(ConfigInvalid, match="needs uvicorn") as raised:
        IndexHook([tmp_path])

    assert raised.value.remedy == "Install it: pip install 'hudi-index-service[hook]'."
