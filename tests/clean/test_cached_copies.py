"""Copies of remote entries in the user's cache: checked, renewed, and gone with their source."""

import os
import shutil
import uuid
from pathlib import Path
from time import time

import pytest

from hudi_index_service.clean import clean
from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.entry import Entry, EntryListing
from hudi_index_service.index.local_copy import packed_index, purge_copies
from hudi_index_service.index.packed_file import checksums
from hudi_index_service.storage import Storage
from hudi_index_service.table.protocol import BaseFile, FileSlice, HudiTable, Instant, Snapshot
from hudi_index_service.verify import verify
from tests.index.golden import make


@pytest.fixture
def remote() -> Storage:
    """The golden table in an object store."""
    storage = Storage(f"memory://{uuid.uuid4().hex}")
    for path in make.FOLDER.rglob("*"):
        if path.is_file():
            storage.create(str(path.relative_to(make.FOLDER)), path.read_bytes())
    return storage


@pytest.fixture
def entry(remote: Storage) -> Entry:
    return EntryListing(remote, "lucene").find(make.base_file(make.FOLDER))


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def copies(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.rglob("*") if path.is_file())


def test_one_checked_copy_is_made(remote: Storage, entry: Entry, cache: Path) -> None:
    index = packed_index(remote, entry, cache)

    assert index.path.read_bytes() == remote.read(entry.data_path)
    assert (cache / "entries").stat().st_mode & 0o777 == 0o700
    assert index.path.stat().st_mode & 0o077 == 0
    read = remote.io.bytes_read
    assert packed_index(remote, entry, cache).path == index.path
    assert remote.io.bytes_read == read
    assert len(copies(cache)) == 1


def test_damage_in_the_store_is_found_before_it_is_cached(
    remote: Storage, entry: Entry, cache: Path
) -> None:
    content = bytearray(remote.read(entry.data_path))
    content[100] ^= 1
    remote.replace(entry.data_path, bytes(content))

    with pytest.raises(EntryInvalid, match="SHA-256 is not the manifest's"):
        packed_index(remote, entry, cache)
    assert copies(cache) == []


def test_an_entry_gone_from_the_store(remote: Storage, entry: Entry, cache: Path) -> None:
    remote.delete([entry.data_path])
    with pytest.raises(EntryInvalid, match="is missing"):
        packed_index(remote, entry, cache)
    assert copies(cache) == []


def test_a_copy_cut_short_is_made_anew(remote: Storage, entry: Entry, cache: Path) -> None:
    copy = packed_index(remote, entry, cache).path
    copy.write_bytes(copy.read_bytes()[:100])
    assert checksums(packed_index(remote, entry, cache).path)[1] == entry.manifest.data.sha256


def test_copies_that_are_not_kept_go(remote: Storage, entry: Entry, cache: Path) -> None:
    copy = packed_index(remote, entry, cache).path
    others = copy.with_name(f"{'0' * 16}-{entry.manifest.data.sha256}.pack")
    shutil.copy(copy, others)
    abandoned, running = (
        copy.with_name(f"{copy.name[:16]}-{name}.part") for name in ("old", "new")
    )
    abandoned.write_bytes(b"half")
    running.write_bytes(b"half")
    os.utime(abandoned, (time() - 7200, time() - 7200))

    assert purge_copies(remote, cache, keep={entry.manifest.data.sha256}) == 1
    assert copies(cache) == sorted([copy.name, others.name, running.name])
    assert purge_copies(remote, cache, keep=()) == 1
    assert copies(cache) == sorted([others.name, running.name])
    assert purge_copies(remote, cache / "absent", keep=()) == 0


class TableInStore:
    """What cleaning and verifying need of a table: hudi-rs opens none in memory."""

    def __init__(self, storage: Storage, base_file: BaseFile) -> None:
        self.storage = storage
        self._base_file = base_file

    def completed_instants(self) -> tuple[Instant, ...]:
        return (Instant(self._base_file.instant, "replacecommit"),)

    def snapshot(self) -> Snapshot:
        file = self._base_file
        return Snapshot(file.instant, (FileSlice(file.partition, file.file_id, file),))


@pytest.fixture
def table(remote: Storage) -> HudiTable:
    return TableInStore(remote, make.base_file(make.FOLDER))  # type: ignore[return-value]


def test_cleaning_keeps_the_copy_of_a_living_entry(
    remote: Storage, entry: Entry, cache: Path, table: HudiTable
) -> None:
    packed_index(remote, entry, cache)
    clean(table, {"lucene": {"name"}}, Settings(cache_folder=cache))
    assert len(copies(cache)) == 1


def test_erased_data_leaves_the_cache_too(
    remote: Storage, entry: Entry, cache: Path, table: HudiTable
) -> None:
    packed_index(remote, entry, cache)
    remote.delete([make.BASE_FILE])

    cleaning = clean(table, {"lucene": {"name"}}, Settings(cache_folder=cache))

    assert len(cleaning.removals) == 2
    assert EntryListing(remote, "lucene").folders() == []
    assert copies(cache) == []


def test_verifying_reads_what_is_stored_not_what_is_cached(
    remote: Storage, entry: Entry, cache: Path, table: HudiTable
) -> None:
    settings = Settings(cache_folder=cache)
    packed_index(remote, entry, cache)
    assert verify(table, ["lucene"], settings) == []

    content = bytearray(remote.read(entry.data_path))
    content[100] ^= 1
    remote.replace(entry.data_path, bytes(content))

    (wrong,) = verify(table, ["lucene"], settings)
    assert "SHA-256" in wrong.message
    assert len(copies(cache)) == 1


def test_verifying_notices_another_footer(remote: Storage, cache: Path, table: HudiTable) -> None:
    content = bytearray(remote.read(make.BASE_FILE))
    content[-20] ^= 1
    remote.replace(make.BASE_FILE, bytes(content))
    (wrong,) = verify(table, ["lucene"], Settings(cache_folder=cache))
    assert "the footer of" in wrong.message
