"""Documents nested deeper than any parser goes are treated as damaged, whatever their kind."""

from pathlib import Path

import pytest

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.metadata.build_records import BUILDS_FOLDER, BuildRecords
from hudi_index_service.index.metadata.definitions import IndexDefinition
from hudi_index_service.index.metadata.documents import Document
from hudi_index_service.index.metadata.manifest import Manifest
from hudi_index_service.index.metadata.summary import Summary
from hudi_index_service.storage.store import Storage

DEEP = b"[" * 100_000


@pytest.mark.parametrize("name", ["started.json", "heartbeat", "finished.json", "cancel.json"])
def test_deeply_nested_build_record_is_damaged(name: str, tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    storage.create(f"{BUILDS_FOLDER}/000001/started.json", b"{}")
    storage.replace(f"{BUILDS_FOLDER}/000001/{name}", DEEP)
    records = BuildRecords(storage, stale_seconds=60)
    assert [each.number for each in records.all()] == [1]
    assert records.failed_entries() == []


@pytest.mark.parametrize("kind", [IndexDefinition, Manifest, Summary])
@pytest.mark.parametrize("depth", [10, 300, 990, 100_000])
def test_deeply_nested_document_is_damaged(kind: type[Document], depth: int) -> None:
    nested = b"[" * depth + b"]" * depth
    with pytest.raises(EntryInvalid):
        kind.from_json(b'{"format": [1, 0], "x": %s}' % nested, source="it")
    with pytest.raises(EntryInvalid):
        kind.from_json(DEEP, source="it")
