"""One thread looks into an index folder while another does."""

from collections.abc import Callable
from pathlib import Path

from hudi_index_service.definitions import Column, DefinitionStore, SeenTimeline
from hudi_index_service.read.index_folder import IndexFolderReader
from hudi_index_service.storage import Storage, StoredFile


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
