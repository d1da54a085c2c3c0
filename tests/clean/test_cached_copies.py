"""Copies of remote entries in the user's cache: checked, renewed, limited in size, and removed with
their source."""

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import time

import pytest

from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryInvalid, StorageFailed
from hudi_index_service.index.files.local_copy import block_copy, copies_but, discard, packed_index
from hudi_index_service.index.metadata.entry import Entry, EntryListing
from hudi_index_service.index.packed_file import checksums
from hudi_index_service.storage.store import Storage
from tests.index.golden import make


@pytest.fixture
def remote() -> Storage:
    """The golden table in an object store."""
    return make.put(Storage(f"memory://{uuid.uuid4().hex}"))


@pytest.fixture
def entry(remote: Storage) -> Entry:
    return EntryListing(remote, "lucene").find(make.base_file(make.FOLDER))


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def copies(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "entries").rglob("*"))


def copy_of(storage: Storage, entry: Entry, settings: Settings) -> Path:
    """Creates or finds the copy, as a reader does."""
    with packed_index(storage, entry, settings) as index:
        return index.path


def test_one_verified_copy_is_made(
    remote: Storage, entry: Entry, cache: Path, settings: Settings
) -> None:
    path = copy_of(remote, entry, settings)

    assert path.read_bytes() == remote.read(entry.data_path)
    assert (cache / "entries").stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o077 == 0
    read = remote.io.bytes_read
    assert copy_of(remote, entry, settings) == path
    assert remote.io.bytes_read == read
    assert len(copies(cache)) == 1


def test_damage_in_the_store_is_detected_before_caching(
    remote: Storage, entry: Entry, cache: Path, settings: Settings
) -> None:
    content = bytearray(remote.read(entry.data_path))
    content[100] ^= 1
    remote.replace(entry.data_path, bytes(content))

    with pytest.raises(EntryInvalid, match="SHA-256 is not the manifest's"):
        copy_of(remote, entry, settings)
    assert copies(cache) == []


def test_an_entry_missing_from_the_store_is_refused(
    remote: Storage, entry: Entry, cache: Path, settings: Settings
) -> None:
    remote.delete([entry.data_path])
    with pytest.raises(EntryInvalid, match="is missing"):
        copy_of(remote, entry, settings)
    assert copies(cache) == []


def test_a_truncated_copy_is_replaced(remote: Storage, entry: Entry, settings: Settings) -> None:
    copy = copy_of(remote, entry, settings)
    copy.write_bytes(copy.read_bytes()[:100])
    assert checksums(copy_of(remote, entry, settings))[1] == entry.manifest.data.sha256


@contextmanager
def in_use(path: Path) -> Iterator[None]:
    """Locks a file as a process does that creates or opens a copy."""
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


def test_copies_that_are_not_kept_are_removed(
    remote: Storage, entry: Entry, settings: Settings
) -> None:
    cache = settings.cache_folder
    copy = copy_of(remote, entry, settings)
    others = copy.with_name(f"{'0' * 16}-{entry.manifest.data.sha256}.pack")
    shutil.copy(copy, others)
    abandoned, in_progress = (
        copy.with_name(f"{copy.name[:16]}-{name}.part") for name in ("old", "new")
    )
    abandoned.write_bytes(b"half")
    in_progress.write_bytes(b"half")
    with in_use(in_progress):
        unwanted = copies_but(remote, cache, keep={entry.manifest.data.sha256})
        assert [(each.path, each.size) for each in unwanted] == [(abandoned, 4)]
        discard(unwanted)
        discard(copies_but(remote, cache, keep=()))
    assert copies(cache) == sorted([others.name, in_progress.name])
    assert copies_but(remote, cache / "absent", keep=()) == []


def test_a_cache_that_is_not_this_users_own_is_refused(
    remote: Storage, entry: Entry, cache: Path, settings: Settings, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    cache.mkdir()
    folder = cache / "entries"
    folder.symlink_to(elsewhere)
    with pytest.raises(StorageFailed, match="is not used: it is a link"):
        copy_of(remote, entry, settings)
    with pytest.raises(StorageFailed, match="is not used: it is a link"):
        copies_but(remote, cache, keep=())
    assert list(elsewhere.iterdir()) == []

    folder.unlink()
    folder.mkdir()
    folder.chmod(0o770)
    with pytest.raises(StorageFailed, match=r"others may write to it \(mode 0770\)"):
        copy_of(remote, entry, settings)
    folder.chmod(0o755)
    copy_of(remote, entry, settings)
    assert folder.stat().st_mode & 0o777 == 0o700, "what others could read is closed to them"
    if os.getuid() == 0:
        os.chown(folder, 12345, 12345)
        with pytest.raises(StorageFailed, match="belongs to the user with the id 12345"):
            copy_of(remote, entry, settings)


def test_links_in_the_cache_are_not_followed(
    remote: Storage, entry: Entry, cache: Path, settings: Settings, tmp_path: Path
) -> None:
    copy = copy_of(remote, entry, settings)
    precious = tmp_path / "precious"
    precious.write_text("mine")
    lock = cache / "entries.lock"
    lock.unlink()
    lock.symlink_to(precious)
    copy.unlink()
    with pytest.raises(StorageFailed, match=r"entries\.lock is not used: it is a link"):
        copy_of(remote, entry, settings)
    lock.unlink()
    copy.symlink_to(precious)
    assert checksums(copy_of(remote, entry, settings))[1] == entry.manifest.data.sha256
    assert not copy.is_symlink()
    blocks = copy.with_suffix(".blocks")
    blocks.symlink_to(precious)
    with block_copy(remote, entry, settings) as (path, opened):
        opened.close()
    assert path == blocks
    assert not blocks.is_symlink()
    assert precious.read_text() == "mine"


def other_copies(folder: Path, number: int, size: int) -> list[Path]:
    """Copies of other tables' entries; the first is the least recently used."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for i in range(number):
        path = folder / f"{'0' * 16}-{i:064}.pack"
        path.write_bytes(b"\0" * size)
        os.utime(path, (time() - 1000 + i, time() - 1000 + i))
        made.append(path)
    return made


def test_the_least_recently_used_copies_are_evicted(
    remote: Storage, entry: Entry, cache: Path
) -> None:
    settings = Settings(cache_folder=cache, cache_max_mb=1)
    others = other_copies(cache / "entries", 4, 300_000)

    with in_use(others[0]):  # another process is about to open it
        copy = copy_of(remote, entry, settings)

    assert copies(cache) == sorted(each.name for each in [others[0], *others[2:], copy])


def test_using_a_copy_again_keeps_it_in_the_cache(
    remote: Storage, entry: Entry, cache: Path
) -> None:
    copy = copy_of(remote, entry, Settings(cache_folder=cache))
    os.utime(copy, (1, 1))
    copy_of(remote, entry, Settings(cache_folder=cache))
    (older,) = other_copies(cache / "entries", 1, 1_048_000)
    name = next(iter(set(copies(cache)) - {older.name}))
    os.utime(older, (2, 2))

    other_table = copy_of_store(remote)
    copy_of(other_table, entry, Settings(cache_folder=cache, cache_max_mb=1))

    assert name in copies(cache)
    assert older.name not in copies(cache)


def test_data_of_another_length_than_the_manifests_is_refused(
    remote: Storage, entry: Entry, cache: Path
) -> None:
    others = other_copies(cache / "entries", 2, 600_000)
    longer = entry.manifest.data.model_copy(update={"length": 2**21})
    manifest = entry.manifest.model_copy(update={"data": longer})

    with pytest.raises(EntryInvalid, match=f"has {entry.manifest.data.length} bytes, not {2**21}"):
        copy_of(remote, Entry(entry.folder, manifest), Settings(cache_folder=cache, cache_max_mb=1))
    assert not any(path.exists() for path in others), "room was made for the longer file"


def test_a_copy_made_concurrently_is_used_and_not_replaced(
    remote: Storage,
    entry: Entry,
    cache: Path,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faster = ExitStack()
    download = Storage.download

    def slow_download(self: Storage, source: str, target: Path) -> None:
        monkeypatch.setattr(Storage, "download", download)
        faster.enter_context(packed_index(remote, entry, settings))
        download(self, source, target)

    monkeypatch.setattr(Storage, "download", slow_download)
    with faster:
        with packed_index(remote, entry, settings) as index:
            made = index.path.stat().st_ino
            assert len(copies(cache)) == 2, "the other copy, and ours, which is no longer needed"
        full = settings.model_copy(update={"cache_max_mb": 0.001})
        copy_of(copy_of_store(remote), entry, full)
        assert index.path.stat().st_ino == made, "evicted while the faster one still opens it"


def copy_of_store(remote: Storage) -> Storage:
    return make.put(Storage(f"memory://{uuid.uuid4().hex}"))
