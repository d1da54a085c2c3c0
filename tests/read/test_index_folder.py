"""Threads look into an index folder at the same time, and only when needed."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from hudi_index_service import open_table
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.definitions import (
    Column,
    Definitions,
    DefinitionStore,
    SeenTimeline,
)
from hudi_index_service.index.metadata.entry import EntryListing
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read import index_folder
from hudi_index_service.read.index_folder import IndexFolder, IndexFolderReader
from hudi_index_service.read.planner import QueryPlanner
from hudi_index_service.storage.store import Storage, StoredFile


class Interrupted(Storage):
    """Runs a callback in the middle of the first listing."""

    meanwhile: Callable[[], None] = staticmethod(lambda: None)

    def files(self, prefix: str = "") -> list[StoredFile]:
        now, self.meanwhile = self.meanwhile, lambda: None
        now()
        return super().files(prefix)


def test_a_look_is_unaffected_by_a_later_one_in_between(tmp_path):
    store = DefinitionStore(Storage(tmp_path), lambda: "")
    seen = SeenTimeline(start="", instants=())
    definition = store.create("i", ("lucene",), [Column(name="msg")], seen)
    definitions = [definition]
    storage = Interrupted(tmp_path)
    folder = IndexFolderReader(storage, lambda: Definitions(tuple(definitions), complete=True))

    def drop_and_look():
        definitions.clear()
        folder.look()

    storage.meanwhile = drop_and_look
    found = folder.look()

    assert found.definitions == (definition,)
    assert found.index_types == ["lucene"]


def test_queries_on_a_local_table_are_planned_in_turn(awkward, monkeypatch):
    """Planning is all Python: threads that plan at once only take turns."""
    table, plan = awkward("clustered, partitioned").table, QueryPlanner._plan
    planning, second, overlapped = Event(), Event(), list[bool]()

    def watched(self, *arguments, **options):
        if planning.is_set():
            second.set()
        else:
            planning.set()
            overlapped.append(second.wait(0.2))
        return plan(self, *arguments, **options)

    monkeypatch.setattr(QueryPlanner, "_plan", watched)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(table.scan("amount = 3").count)
        assert planning.wait(10)
        other = threads.submit(table.scan("amount = 6").count)
        assert (first.result(), other.result()) == (1, 1)
    assert overlapped == [False]
    assert second.is_set()


@pytest.mark.parametrize(
    ("where", "looks"),
    [("amount = 100", 1), ("amount = 3 AND amount = 6", 0), ("part = 'p7' AND amount = 3", 0)],
)
def test_the_folder_is_not_read_if_every_slice_is_skipped(awkward, recorded, where, looks):
    looked = recorded(IndexFolderReader, "look", lambda self: "once")
    scan = awkward("clustered, partitioned").table.scan(where)
    assert scan.to_arrow().num_rows == 0
    assert len(looked) == looks
    assert scan.statistics.count(Access.SKIP) == len(scan.statistics.slices)


@pytest.mark.parametrize(
    ("where", "left"),
    [("amount = 100", 0), ("amount = 3", 1), ("amount IN (3, 6)", 2), ("amount < 100", 3)],
)
def test_entries_of_base_files_that_segments_leave_are_found_without_a_listing(
    copied, recorded, where, left
):
    found = recorded(EntryListing, "find", lambda self, base_file: base_file.path)
    listed = recorded(Storage, "files", lambda self, prefix="": prefix)
    with open_table(copied) as table:
        table.scan(where).to_arrow()
        assert len(found) == left
        table.scan(where).to_arrow()
        assert len(found) == left
    assert not [each for each in listed if each.startswith(".hoodie/.index/lucene")]


def test_entries_that_no_segment_states_are_listed(copied, recorded, monkeypatch):
    listed = recorded(EntryListing, "__init__", lambda *_, only=None, **__: only)
    shutil.rmtree(copied / ".hoodie/.index/_service/segments")
    with open_table(copied) as table:
        assert table.scan("amount < 100").to_arrow().num_rows > 0
        assert sum(map(len, listed)) == 3
        listed.clear()
        monkeypatch.setattr(index_folder, "_ONE_BY_ONE", 2)
        table.scan("amount < 100").to_arrow()
        assert listed == [None], "all of them at once"


@pytest.mark.parametrize(
    ("columns", "started"),
    [(["msg", "other"], ["lucene"]), (["other"], []), ([], [])],
    ids=["an indexed column", "another column", "no predicate"],
)
def test_runtime_of_an_index_is_started_for_predicates_on_its_columns(
    tmp_path, monkeypatch, columns, started
):
    seen = SeenTimeline(start="", instants=())
    store = DefinitionStore(Storage(tmp_path), lambda: "")
    definition = store.create("i", ("lucene", "gone"), [Column(name="msg")], seen)
    starts: list[str] = []
    lucene = index_type("lucene")
    monkeypatch.setattr(type(lucene), "start_runtime", lambda self: starts.append(self.name))

    IndexFolder(definitions=(definition,)).start_runtimes(columns)

    assert starts == started
