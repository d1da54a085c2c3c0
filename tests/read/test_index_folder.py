"""Threads look into an index folder at the same time, and only when needed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hudi_index_service.index.entries.entry import EntryListing
from hudi_index_service.metadata.definitions import Column, DefinitionStore, SeenTimeline
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read import index_folder
from hudi_index_service.read.index_folder import IndexFolder, IndexFolderReader
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
    folder = IndexFolderReader(storage, lambda: definitions)

    def drop_and_look() -> None:
        definitions.clear()
        folder.look()

    storage.meanwhile = drop_and_look
    found = folder.look()

    assert found.definitions == (definition,)
    assert found.index_types == ["lucene"]


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


@pytest.mark.parametrize(
    ("where", "listed"),
    [("amount = 100", 0), ("amount = 3", 1), ("amount IN (3, 6)", 2), ("amount < 100", 3)],
)
def test_entries_are_listed_of_base_files_that_segments_leave(
    clustered: Callable[[bool], Indexed], monkeypatch: pytest.MonkeyPatch, where: str, listed: int
) -> None:
    folders: list[str] = []

    class Watched(EntryListing):
        def __init__(
            self, *arguments: Any, only: Sequence[str] | None = None, **others: Any
        ) -> None:
            folders.extend(only or ["all"])
            super().__init__(*arguments, only=only, **others)

    monkeypatch.setattr(index_folder, "EntryListing", Watched)
    clustered(True).table.scan(where).to_arrow()
    assert len(folders) == listed
