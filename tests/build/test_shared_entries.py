"""Definitions that share an entry: racing builders, and definitions changed during a build."""

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.build.entry.task import BuildTask, TaskOutcome, TaskStatus, run_task
from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.metadata.definitions import Column
from hudi_index_service.index.metadata.documents import SERVICE_FOLDER
from hudi_index_service.index.metadata.entry import EntryListing
from hudi_index_service.index.metadata.manifest import Manifest, entry_folder
from hudi_index_service.storage.store import Storage, StoredFile
from tests.build.entries import (
    all_manifests,
    assert_no_stray_data,
    columns,
    data_files,
    manifests,
)
from tests.programs import Running

FIRST = "2026-01-01"


class InterruptedStorage(Storage):
    """Calls `then` just before a file with `at` in its path is created, once."""

    at = ""
    then: Callable[[], object] = staticmethod(lambda: None)

    def create(self, path: str, data: bytes | Path) -> None:
        if self.at and self.at in path:
            self.at = ""
            self.then()
        super().create(path, data)


def task(table: IndexedTable, storage: Storage | None = None) -> BuildTask:
    """The task that a full build creates for the base file of the first partition."""
    (due,) = table.build(strategy="all", partitions=[FIRST], dry_run=True).due
    return BuildTask(
        storage or Storage(table.uri),
        due,
        "000001",
        memory_mb=16,
        batch_rows=1000,
        schema=table.schema(),
    )


def before_publishing(table: IndexedTable, then: Callable[[], object]) -> TaskOutcome:
    """Runs the first partition's task and calls `then` after indexing, before the manifest."""
    storage = InterruptedStorage(table.uri)
    build_task = task(table, storage)
    storage.at, storage.then = "/manifest-", then
    return run_task(build_task)


def test_the_loser_of_a_race_keeps_the_winners_entry(cow: IndexedTable) -> None:
    cow.drop_index("early")
    cow.create_index("amounts", ["amount"])

    def other_builder() -> None:
        cow.create_index("texts", ["msg"])
        assert run_task(task(cow)).status is TaskStatus.BUILT

    assert before_publishing(cow, other_builder).status is TaskStatus.PRESENT
    (manifest,) = manifests(cow.uri)
    assert (manifest.generation, columns(manifest)) == (1, ["amount", "msg"])
    assert_no_stray_data(cow.uri)


def test_a_column_missing_from_the_winners_entry_makes_a_new_generation(cow: IndexedTable) -> None:
    cow.create_index("texts", ["id"])
    narrow = task(cow)
    narrow = replace(narrow, due=replace(narrow.due, definitions={"texts": ""}))

    assert before_publishing(cow, lambda: run_task(narrow)).status is TaskStatus.BUILT

    (manifest,) = manifests(cow.uri)
    assert (manifest.generation, columns(manifest)) == (2, ["amount", "id", "msg"])


def test_a_withdrawn_generation_number_is_not_reused(
    cow: IndexedTable,
) -> None:
    """While this task builds generation 1, another task publishes 1 and 2, and withdraws 1."""
    cow.create_index("texts", ["id"])
    (due,) = cow.build(strategy="all", partitions=[FIRST], dry_run=True).due

    def other_builder() -> None:
        narrow = replace(task(cow), due=replace(due, definitions={"texts": ""}))
        wide = replace(narrow, due=replace(due, definitions={"texts": "", "amounts": ""}))
        assert run_task(narrow).status is TaskStatus.BUILT
        cow.create_index("amounts", ["amount"])
        assert run_task(wide).status is TaskStatus.BUILT
        first = next(each for each in all_manifests(cow.uri) if each.name == "manifest-0001.json")
        data = Manifest.from_json(first.read_bytes(), source=str(first)).data.name
        first.with_name(data).unlink()
        first.unlink()

    outcome = before_publishing(cow, other_builder)

    assert outcome.status is TaskStatus.BUILT
    (manifest,) = manifests(cow.uri)
    assert columns(manifest) == ["amount", "id", "msg"]
    assert manifest.generation == 3
    assert_no_stray_data(cow.uri)


class ListingRecorder(Storage):
    """Records the listed prefixes."""

    listed: list[str]

    def files(self, prefix: str = "") -> list[StoredFile]:
        self.listed.append(prefix)
        return super().files(prefix)


def test_a_task_lists_only_the_folder_of_its_entry(cow: IndexedTable) -> None:
    storage = ListingRecorder(cow.uri)
    build_task = task(cow, storage)
    storage.listed = []
    assert run_task(build_task).status is TaskStatus.BUILT
    below_entries = {path for path in storage.listed if not path.startswith(SERVICE_FOLDER)}
    assert below_entries == {entry_folder("lucene", build_task.due.base_file)}


def test_an_index_dropped_before_the_task_begins_is_not_built(cow: IndexedTable) -> None:
    late = task(cow)
    cow.drop_index("early")

    assert run_task(late).status is TaskStatus.UNWANTED
    assert all_manifests(cow.uri) == data_files(cow.uri) == []


def test_an_index_dropped_before_publishing_leaves_nothing(cow: IndexedTable) -> None:
    outcome = before_publishing(cow, lambda: cow.drop_index("early", purge=True))

    assert outcome.status is TaskStatus.UNWANTED
    assert all_manifests(cow.uri) == data_files(cow.uri) == []


def test_a_column_dropped_before_publishing_leaves_nothing(cow: IndexedTable) -> None:
    """The drop's cleaner has looked before the task publishes, so the task checks afterwards."""
    cow.create_index("keys", ["id"])

    outcome = before_publishing(cow, lambda: cow.drop_index(columns=["msg"], purge=True))

    assert outcome.status is TaskStatus.BUILT
    (manifest,) = manifests(cow.uri)
    assert columns(manifest) == ["amount", "id"]
    assert len(all_manifests(cow.uri)) == len(data_files(cow.uri)) == 1
    assert b"Buying car" not in data_files(cow.uri)[0].read_bytes()


def test_an_index_recreated_before_publishing_is_built(cow: IndexedTable) -> None:
    def again() -> None:
        cow.drop_index("early")
        cow.create_index("early", ["amount", "msg"])

    assert before_publishing(cow, again).status is TaskStatus.BUILT
    (manifest,) = manifests(cow.uri)
    assert (manifest.generation, columns(manifest)) == (1, ["amount", "msg"])
    assert cow.build(strategy="all", partitions=[FIRST]).due == ()


def test_a_definition_altered_since_planning_is_built_as_altered(cow: IndexedTable) -> None:
    late = task(cow)
    cow.alter_index("early", add=["id"], drop=["amount"], options={"msg": {"analyzer": "standard"}})

    assert run_task(late).status is TaskStatus.BUILT
    (manifest,) = manifests(cow.uri)
    assert {c.name: c.fields for c in manifest.columns} == {
        "id": ("keyword",),
        "msg": ("keyword", "text:standard"),
    }
    assert cow.build(strategy="all", partitions=[FIRST]).due == ()


def test_columns_added_before_publishing_are_built_next(cow: IndexedTable) -> None:
    outcome = before_publishing(cow, lambda: cow.alter_index("early", add=["id"]))

    assert outcome.status is TaskStatus.BUILT
    assert [columns(each) for each in manifests(cow.uri)] == [["amount", "msg"]]
    cow.refresh("early").raise_for_failures()
    assert [columns(each) for each in manifests(cow.uri)][:1] == [["amount", "id", "msg"]]


def test_fields_of_a_dropped_index_are_left_out(cow: IndexedTable) -> None:
    cow.create_index("words", [Column(name="msg", options={"analyzer": "standard"}), "ts"])
    run_task(task(cow))
    cow.drop_index("words")
    cow.create_index("keys", ["id"])

    assert run_task(task(cow)).status is TaskStatus.BUILT

    (manifest,) = manifests(cow.uri)
    assert {c.name: c.fields for c in manifest.columns} == {
        "amount": ("number",),
        "id": ("keyword",),
        "msg": ("keyword",),
    }
    assert sorted(manifest.definitions) == ["early", "keys"]


RUN_TASK_ON_SIGNAL = """
import json, sys
from dataclasses import replace
from hudi_index_service import open_table
from hudi_index_service.build.entry.task import BuildTask, run_task
from hudi_index_service.storage.store import Storage
uri, name = sys.argv[1:]
table = open_table(uri)
(due,) = table.build(strategy="all", partitions=["2026-01-01"], dry_run=True).due
own = replace(due, definitions={name: ""})
task = BuildTask(Storage(uri), own, "000001", memory_mb=16, batch_rows=10, schema=table.schema())
print("ready", flush=True)
sys.stdin.readline()
print(json.dumps(run_task(task).status.value), flush=True)
"""


def test_processes_that_build_one_index_each_lose_no_column(
    cow: IndexedTable, settings: Settings, monkeypatch: pytest.MonkeyPatch, running: Running
) -> None:
    """The second index is dropped meanwhile."""
    indexes = {"amounts": ["amount"], "keys": ["id"]}
    cow.drop_index("early")
    for name, of in indexes.items():
        cow.create_index(name, of)
    monkeypatch.setenv("HUDI_INDEX_CACHE_FOLDER", str(settings.cache_folder))
    builders = [running(RUN_TASK_ON_SIGNAL, cow.uri, name) for name in indexes]
    for each in builders:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in builders:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    cow.drop_index("keys")
    ends = [json.loads(each.communicate(timeout=120)[0]) for each in builders]

    assert ends[0] == "built"
    assert ends[1] in ("built", "present", "unwanted")
    (manifest,) = manifests(cow.uri)
    assert "amount" in columns(manifest)
    table = open_table(cow.uri, settings=settings)
    table.build(strategy="refresh").raise_for_failures()
    assert columns(manifests(cow.uri)[0]) == ["amount"]
    assert_no_stray_data(cow.uri)


def test_concurrent_purging_and_building_converge(cow: IndexedTable) -> None:
    """A builder that never pauses, while the other index is purged and recreated."""
    cow.create_index("texts", ["id"])
    stopping = threading.Event()
    failed: list[str | None] = []

    def build() -> None:
        other = Storage(cow.uri)
        while not stopping.is_set():
            due = cow.build(strategy="all", partitions=[FIRST], dry_run=True).due
            for each in due:
                build_task = BuildTask(other, each, "000099", 16, 1000, schema=cow.schema())
                failed.extend([o.error] if (o := run_task(build_task)).error else [])

    thread = threading.Thread(target=build)
    thread.start()
    try:
        for _ in range(3):
            cow.drop_index("texts", purge=True)
            assert cow.scan("id = '7' AND amount = 21").count() == 1
            cow.create_index("texts", ["id"])
        cow.drop_index("texts", purge=True)
    finally:
        stopping.set()
        thread.join()

    assert failed == []
    cow.build(strategy="refresh").raise_for_failures()
    listing = EntryListing(Storage(cow.uri), "lucene", fresh=True)
    for folder in listing.folders():
        # A purge may have deleted the data of an entry while the builder published it. No query can
        # use that one; the clean removes it.
        with suppress(EntryInvalid):
            assert columns(listing.newest_valid(folder)) == ["amount", "msg"]
    cow.build(strategy="all").raise_for_failures()
    cow.clean(grace_seconds=0)
    assert [columns(each) for each in manifests(cow.uri)] == [["amount", "msg"]] * 2
    assert_no_stray_data(cow.uri)
