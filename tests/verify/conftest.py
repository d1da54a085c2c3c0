"""A real table of two base files, all of it indexed; every test works on a copy."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hudi_index_service import Column, IndexedTable
from hudi_index_service.config import Settings
from hudi_index_service.index.files.local_copy import packed_index
from hudi_index_service.index.metadata.entry import Entry, EntryListing
from hudi_index_service.index.metadata.manifest import Manifest
from hudi_index_service.index.packed_file import pack, read_member
from hudi_index_service.storage.store import Storage
from tests.indexed import OwnTable

ROWS = 300  # per base file


@pytest.fixture
def table(own_table: OwnTable) -> IndexedTable:
    msg = Column(name="msg", options={"analyzer": "standard"})
    columns = ["id", msg, "amount", "price", "flag", "home.city", "tags"]
    return own_table("kinds_in_two_partitions", columns, name="all")


@pytest.fixture
def entry(table: IndexedTable) -> Entry:
    """The entry of the first base file."""
    return serving(table)


def serving(table: IndexedTable) -> Entry:
    """The entry that serves the first base file now."""
    base_file = table.hudi_table.snapshot().base_files()[0]
    return EntryListing(Storage(table.uri), "lucene", fresh=True).find(base_file)


def files(table: IndexedTable, entry: Entry) -> list[str]:
    """The names of the files in an entry's folder."""
    return sorted(path.name for path in Path(table.uri, entry.folder).iterdir())


def rewrite(path: Path, content: bytes) -> None:
    """Replaces a file; a mapped one is never changed in place."""
    path.unlink()
    path.write_bytes(content)


Forge = Callable[[Mapping[str, bytes]], None]


@pytest.fixture
def members(table: IndexedTable, entry: Entry) -> dict[str, bytes]:
    """The packed files of the entry."""
    with packed_index(Storage(table.uri), entry, Settings()) as index:
        return {name: read_member(index, name) for name in index.members}


@pytest.fixture
def forge(table: IndexedTable, entry: Entry) -> Forge:
    """Puts other packed files into the entry, with matching checksums."""

    def put(members: Mapping[str, bytes]) -> None:
        path = Path(table.uri, entry.data_path)
        path.unlink()
        data = pack(dict(members), path)
        put_manifest(table, entry, entry.manifest.model_copy(update={"data": data}))

    return put


def put_manifest(table: IndexedTable, entry: Entry, manifest: Manifest) -> None:
    """Replaces the entry's manifest by another one with a matching checksum."""
    (path,) = Path(table.uri, entry.folder).glob("manifest-*.json")
    rewrite(path, manifest.to_json())
