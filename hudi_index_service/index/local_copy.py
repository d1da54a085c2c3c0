"""A packed data file on the local disk: itself where the table is local, else a checked copy in the
user's cache folder.

Copies are named by content, so that one of an older entry can never be taken for another's. Several
processes share the folder. What keeps them out of each other's way are locks on the files
themselves (`flock`), which go with the process that held them:

- a copy in the making is locked by whoever makes it: one that is not locked was given up;
- a copy is locked, shared, from before it is found to be there until it is open; one that is locked
  is neither evicted nor replaced. After that it may go: whoever has it open reads on.
"""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import PackedIndex
from hudi_index_service.index.entry import Entry
from hudi_index_service.index.packed_file import checksums
from hudi_index_service.storage import Storage

_FOLDER = "entries"
_SUFFIX = ".pack"
_PART_SUFFIX = ".part"
_LOCK = "entries.lock"  # beside the folder, which holds nothing but copies


@dataclass(frozen=True, slots=True)
class CachedCopy:
    """A file in the cache, and its length in bytes."""

    path: Path
    size: int


@contextmanager
def packed_index(storage: Storage, entry: Entry, settings: Settings) -> Iterator[PackedIndex]:
    """The entry's data file, for the length of the block: whatever opens it there may read on
    afterwards.

    Raises:
        EntryInvalid: the file is missing, or its length or checksum is not the manifest's.
    """
    if storage.is_local:
        yield _described(entry, storage.local_path(entry.data_path))
        return
    with _copy(storage, entry, settings) as path:
        yield _described(entry, path)


def _described(entry: Entry, path: Path) -> PackedIndex:
    data = entry.manifest.data
    try:
        length = path.stat().st_size
    except OSError as error:
        raise EntryInvalid(f"{entry.data_path} is missing: {error.strerror}.") from error
    if length != data.length:
        raise EntryInvalid(f"{entry.data_path} has {length} bytes, not {data.length}.")
    crc32s = data.crc32s()
    if len(crc32s) != -(-length // data.block_size):
        raise EntryInvalid(f"{entry.folder}: the manifest lacks checksums of some blocks.")
    members = {member.name: (member.offset, member.length) for member in data.members}
    if any(offset + size > length for offset, size in members.values()):
        raise EntryInvalid(f"{entry.folder}: the manifest names bytes beyond the data file.")
    return PackedIndex(
        path, members, length, data.block_size, crc32s, entry.manifest.base_file.rows
    )


@contextmanager
def _copy(storage: Storage, entry: Entry, settings: Settings) -> Iterator[Path]:
    """The copy, made if need be, and safe from eviction for the length of the block."""
    data = entry.manifest.data
    folder = settings.cache_folder / _FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy = folder / f"{_table_digest(storage)}-{data.sha256}{_SUFFIX}"
    with ExitStack() as held:
        if not held.enter_context(_in_use(copy, data.length)):
            held.enter_context(_downloaded(storage, entry, copy, settings))
        yield copy


@contextmanager
def _in_use(copy: Path, length: int) -> Iterator[bool]:
    """Keeps a copy of that length from eviction for the length of the block; False if there is
    none."""
    with _locked(copy, fcntl.LOCK_SH) as locked:
        status = _status(copy)
        usable = locked and status is not None and status.st_size == length
        if usable:
            with suppress(FileNotFoundError):  # erased in this moment, which no lock prevents
                os.utime(copy)  # used now: the last to be evicted
        yield usable


@contextmanager
def _downloaded(storage: Storage, entry: Entry, copy: Path, settings: Settings) -> Iterator[None]:
    """Makes the copy; it stays locked for the length of the block."""
    with _alone_in(copy.parent):
        _make_room(copy.parent, entry.manifest.data.length, settings)
        handle, name = tempfile.mkstemp(
            dir=copy.parent, prefix=f"{_table_digest(storage)}-", suffix=_PART_SUFFIX
        )
        fcntl.flock(handle, fcntl.LOCK_SH)
    part = Path(name)
    try:
        try:
            storage.download(entry.data_path, part)
        except FileNotFoundError as error:
            raise EntryInvalid(f"{entry.data_path} is missing.") from error
        if checksums(part)[1] != entry.manifest.data.sha256:
            raise EntryInvalid(f"{entry.data_path} is damaged: its SHA-256 is not the manifest's.")
        with ExitStack() as held:
            with _alone_in(copy.parent):
                # Another process may have made the same copy meanwhile. It is not replaced, since
                # whoever uses it has locked that file, not ours.
                if not held.enter_context(_in_use(copy, entry.manifest.data.length)):
                    part.rename(copy)
            yield
    finally:
        part.unlink(missing_ok=True)
        os.close(handle)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keeps others from making room, beginning a copy or listing the copies for the length of the
    block."""
    with (folder.parent / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make_room(folder: Path, length: int, settings: Settings) -> None:
    """Deletes the copies that were used longest ago, of whatever tables, until one of that length
    fits into what the cache may hold. Those being made or opened stay, so that for a moment it can
    hold more."""
    used = [(copy, status) for copy in _copies(folder) if (status := _status(copy)) is not None]
    excess = sum(status.st_size for _, status in used) + length - settings.cache_max_mb * 2**20
    for copy, status in sorted(used, key=lambda each: each[1].st_mtime):
        if excess <= 0:
            return
        if _deleted_if_idle(copy):
            excess -= status.st_size


def _copies(folder: Path) -> list[Path]:
    return [*folder.glob(f"*{_SUFFIX}"), *folder.glob(f"*{_PART_SUFFIX}")]


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:  # another process was faster
        return None


@contextmanager
def _locked(path: Path, kind: int) -> Iterator[bool]:
    """Locks the file for the length of the block; False if it is not there, or (``LOCK_NB``) if
    another process holds a lock against it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield False
        return
    try:
        try:
            fcntl.flock(handle, kind)
        except BlockingIOError:
            yield False
            return
        # It may have been deleted before it was locked.
        present = _status(path)
        yield present is not None and os.path.samestat(os.fstat(handle), present)
    finally:
        os.close(handle)


def _deleted_if_idle(path: Path) -> bool:
    with _locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB) as locked:
        if locked:
            path.unlink(missing_ok=True)
        return locked


def copies_but(storage: Storage, cache_folder: Path, *, keep: Collection[str]) -> list[CachedCopy]:
    """This user's cached copies of the table's entries, but those whose SHA-256 is to be kept:
    erased data must leave the caches, too. Copies that nobody completes any more are among them."""
    folder = cache_folder / _FOLDER
    if not folder.is_dir():
        return []
    prefix = f"{_table_digest(storage)}-"
    found = []
    with _alone_in(folder):
        for path in sorted(_copies(folder)):
            if not path.name.startswith(prefix):
                continue
            if path.suffix == _SUFFIX:
                unwanted = path.name.removeprefix(prefix).removesuffix(_SUFFIX) not in keep
            else:
                unwanted = not _is_being_made(path)
            status = _status(path)
            if unwanted and status is not None:
                found.append(CachedCopy(path, status.st_size))
    return found


def _is_being_made(part: Path) -> bool:
    with _locked(part, fcntl.LOCK_EX | fcntl.LOCK_NB) as locked:
        return not locked


def discard(copies: Iterable[CachedCopy]) -> None:
    """Deletes copies, those that are open too: their readers read on."""
    for copy in copies:
        copy.path.unlink(missing_ok=True)


def damaged_copies(storage: Storage, cache_folder: Path) -> list[CachedCopy]:
    """This user's cached copies of the table's entries that are not what their names say."""
    return [
        copy
        for copy in copies_but(storage, cache_folder, keep=())
        if copy.path.suffix == _SUFFIX
        and checksums(copy.path)[1] != copy.path.stem.split("-", 1)[1]
    ]


def _table_digest(storage: Storage) -> str:
    return hashlib.sha256(storage.uri.encode()).hexdigest()[:16]
