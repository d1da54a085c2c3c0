"""One thread looks into an index folder while another does."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_index_service.definitions import Column, DefinitionStore, SeenTimeline
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.index_folder import IndexFolder, IndexFolderReader
from hudi_index_service.storage import Storage, StoredFile
from tests.read.conftest import Indexed


class Interrupted(Storage):
    """Lets something else happen in the middle of the first listing of entries."""

    meanwhile: Callable[[], None] = staticmethod(lambda: None)

    def files(self, prefix: str = "") -> list[StoredFile]:
        now, self.meanwhile = self.meanwhile, lambda: None
        now()
        return super().files(prefix)


def test_a_look_sees_what_it_saw_whatever_others_see_meanwhile(tmp_path: Path) -> None:
    store = DefinitionStore(Storage(tmp_path), lambda: "")
    seen = SeenTimeline(start="", instants=())
    definition = store.create("i", ("lucene",), [Column(name="msg")], seen)
    definitions = [definition]
    storage = Interrupted(tmp_path)
    folder = IndexFolderReader(storage, lambda: definitions)

    def dropped_and_looked_at() -> None:
        definitions.clear()
        folder.look()

    storage.meanwhile = dropped_and_looked_at
    found = folder.look()

    assert found.definitions == (definition,)
    assert found.listings.keys() == {"lucene"}


@pytest.mark.parametrize(
    ("where", "looks"),
    [("amount = 100", 1), ("amount = 3 AND amount = 6", 0), ("part = 'p7' AND amount = 3", 0)],
)
def test_nobody_looks_where_nothing_is_left_to_be_read(
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
    skipped = scan.statistics.count(Access.SKIP)
    assert (skipped == len(scan.statistics.slices)) is (looks == 0)
