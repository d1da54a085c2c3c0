"""Threads look into an index folder at the same time, and only when needed."""

import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from hudi_index_service import open_table
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.definitions import (
    Column,
    Definitions,
    DefinitionStore,
    SeenTimeline,
)
from hudi_index_service.index.metadata.entry import Entry, EntryListing
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read import index_folder
from hudi_index_service.read.index_folder import IndexFolder, IndexFolderReader
from hudi_index_service.read.planner import QueryPlanner
from hudi_index_service.storage.store import Storage, StoredFile
from tests.read.conftest import Indexed


class Interrupted(Storage):
    """Runs a callback in the middle of the first listing."""

    meanwhile: Callable[[], None] = staticmethod(lambda: None)

    def files(self, prefix: str = "") -> list[StoredFile]:
        now, self.meanwhile = self.meanwhile, lambda: None
        now()
        return super().files(prefix)


def test_a_look_is_unaffected_by_a_later_one_in_between(tmp_path: Path) -> None:
    store = DefinitionStore(Storage(tmp_path), lambda: "")
    seen = SeenTimeline(start="", instants=())
    definition = store.create("i", ("lucene",), [Column(name="msg")], seen)
    definitions = [definition]
    storage = Interrupted(tmp_path)
    folder = IndexFolderReader(storage, lambda: Definitions(tuple(definitions), complete=True))

    def drop_and_look() -> None:
        definitions.clear()
        folder.look()

    storage.meanwhile = drop_and_look
    found = folder.look()

    assert found.definitions == (definition,)
    assert found.index_types == ["lucene"]


def test_queries_on_a_local_table_are_planned_in_turn(
    clustered: Callable[[bool], Indexed], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planning is all Python: threads that plan at once only take turns."""
    table, plan = clustered(True).table, QueryPlanner._plan
    planning, second, overlapped = Event(), Event(), list[bool]()

    def watched(self: QueryPlanner, *arguments: Any, **options: Any) -> Any:
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
def test_the_folder_is_not_read_if_every_slice_is_skipped(
    clustered: Callable[[bool], Indexed], monkeypatch: pytest.MonkeyPatch, where: str, looks: int
) -> None:
    look, looked = IndexFolderReader.look, list[str]()

    def counted(self: IndexFolderReader) -> IndexFolder:
        looked.append("once")
        return look(self)

    monkeypatch.setattr(IndexFolderReader, "look", counted)
    scan = clustered(True).table.scan(where)
    assert scan.to_arrow().num_rows == 0
    assert len(looked) == looks
    assert scan.statistics is not None
    assert scan.statistics.count(Access.SKIP) == len(scan.statistics.slices)


@pytest.fixture
def copied(clustered: Callable[[bool], Indexed], tmp_path: Path) -> Path:
    """A table of three base files that segments state."""
    return shutil.copytree(clustered(True).path, tmp_path / "copy")


@pytest.mark.parametrize(
    ("where", "left"),
    [("amount = 100", 0), ("amount = 3", 1), ("amount IN (3, 6)", 2), ("amount < 100", 3)],
)
def test_entries_of_base_files_that_segments_leave_are_found_without_a_listing(
    copied: Path, monkeypatch: pytest.MonkeyPatch, where: str, left: int
) -> None:
    found, listed = list[str](), list[str]()
    find, files = EntryListing.find, Storage.files

    def finding(self: EntryListing, base_file: BaseFile) -> Entry:
        found.append(base_file.path)
        return find(self, base_file)

    def listing(self: Storage, prefix: str = "") -> list[StoredFile]:
        listed.append(prefix)
        return files(self, prefix)

    monkeypatch.setattr(EntryListing, "find", finding)
    monkeypatch.setattr(Storage, "files", listing)
    with open_table(copied) as table:
        table.scan(where).to_arrow()
        assert len(found) == left
        table.scan(where).to_arrow()
        assert len(found) == left
    assert not [each for each in listed if each.startswith(".hoodie/.index/lucene")]


def test_entries_that_no_segment_states_are_listed(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders: list[str] = []

    class Watched(EntryListing):
        def __init__(
            self, *arguments: Any, only: Sequence[str] | None = None, **others: Any
        ) -> None:
            folders.extend(["all"] if only is None else only)
            super().__init__(*arguments, only=only, **others)

    shutil.rmtree(copied / ".hoodie/.index/_service/segments")
    monkeypatch.setattr(index_folder, "EntryListing", Watched)
    with open_table(copied) as table:
        assert table.scan("amount < 100").to_arrow().num_rows > 0
        assert len(folders) == 3
        monkeypatch.setattr(index_folder, "_ONE_BY_ONE", 2)
        table.scan("amount < 100").to_arrow()
        assert folders[3:] == ["all"]


@pytest.mark.parametrize(
    ("columns", "started"),
    [(["msg", "other"], ["lucene"]), (["other"], []), ([], [])],
    ids=["an indexed column", "another column", "no predicate"],
)
def test_runtime_of_an_index_is_started_for_predicates_on_its_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: list[str], started: list[str]
) -> None:
    seen = SeenTimeline(start="", instants=())
    store = DefinitionStore(Storage(tmp_path), lambda: "")
    definition = store.create("i", ("lucene", "gone"), [Column(name="msg")], seen)
    starts: list[str] = []
    lucene = index_type("lucene")
    monkeypatch.setattr(type(lucene), "start_runtime", lambda self: starts.append(self.name))

    IndexFolder(definitions=(definition,)).start_runtimes(columns)

    assert starts == started
