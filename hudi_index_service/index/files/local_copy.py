"""Provides a packed data file on the local disk: the file itself if the table is local, else a
checked copy in the user's cache folder (see `cache_folder`). A copy is whole, or for a large file
holds only the blocks requested so far (see `block_copy`).

Copies are named by content, so that a copy of an older entry is never mistaken for another's.
"""

import fcntl
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import PackedIndex
from hudi_index_service.index.files import io_counters
from hudi_index_service.index.files.block_copy import BlockCopy, block_copy
from hudi_index_service.index.files.cache_folder import (
    PART_SUFFIX,
    WHOLE_SUFFIX,
    alone_in,
    bytes_of,
    copies_folder,
    copies_in,
    in_use,
    locked,
    made_folder,
    make_room,
    require_own,
    status_of,
    table_prefix,
)
from hudi_index_service.index.metadata.entry import Entry
from hudi_index_service.index.packed_file import checksums
from hudi_index_service.storage.store import Storage

WHOLE_UP_TO = 8 * 2**20
"""Data files up to this many bytes are copied whole: their transfer takes about as long as one
request. See benchmarks/README.md for the measurements."""


@dataclass(frozen=True, slots=True)
class CachedCopy:
    """A file in the cache, and its size on disk in bytes."""

    path: Path
    size: int


@contextmanager
def packed_index(storage: Storage, entry: Entry, settings: Settings) -> Iterator[PackedIndex]:
    """The entry's data file, available within the block. A reader that opens it there may continue
    to read afterwards.

    Raises:
        EntryInvalid: the file is missing, or its length or checksum is not the manifest's.
    """
    if storage.is_local:
        yield _index_at(entry, storage.local_path(entry.data_path))
        return
    with _copy(storage, entry, settings) as path:
        yield _index_at(entry, path)


@contextmanager
def readable_index(
    storage: Storage, entry: Entry, settings: Settings
) -> Iterator[tuple[PackedIndex, BlockCopy | None]]:
    """Like `packed_index`, for a reader that fetches missing blocks with `PackedIndex.blocks`: only
    the requested blocks of a large remote file are copied. The caller closes the copy, if there is
    one, when it no longer needs the index.

    Raises: see `packed_index`.
    """
    data = entry.manifest.data
    if not storage.is_local and data.length > WHOLE_UP_TO:
        copy = _whole_copy(storage, entry, settings)
        with in_use(copy, data.length) as exists:
            if not exists:
                with block_copy(storage, entry, settings) as (path, blocks):
                    yield replace(_index_at(entry, path), blocks=blocks), blocks
                return
    with packed_index(storage, entry, settings) as index:
        yield index, None


def _index_at(entry: Entry, path: Path) -> PackedIndex:
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


def _whole_copy(storage: Storage, entry: Entry, settings: Settings) -> Path:
    name = f"{table_prefix(storage)}{entry.manifest.data.sha256}{WHOLE_SUFFIX}"
    return made_folder(settings) / name


@contextmanager
def _copy(storage: Storage, entry: Entry, settings: Settings) -> Iterator[Path]:
    """The whole copy, made if needed, and protected from eviction within the block."""
    copy = _whole_copy(storage, entry, settings)
    with ExitStack() as locks:
        if not locks.enter_context(in_use(copy, entry.manifest.data.length)):
            locks.enter_context(_download(storage, entry, copy, settings))
        yield copy


@contextmanager
def _download(storage: Storage, entry: Entry, copy: Path, settings: Settings) -> Iterator[None]:
    """Makes the copy, which stays locked within the block."""
    with alone_in(copy.parent):
        make_room(copy.parent, entry.manifest.data.length, settings)
        handle, name = tempfile.mkstemp(
            dir=copy.parent, prefix=table_prefix(storage), suffix=PART_SUFFIX
        )
        fcntl.flock(handle, fcntl.LOCK_SH)
    part = Path(name)
    try:
        try:
            storage.download(entry.data_path, part)
        except FileNotFoundError as error:
            raise EntryInvalid(f"{entry.data_path} is missing.") from error
        io_counters.count(requests=1, bytes=part.stat().st_size)
        if checksums(part)[1] != entry.manifest.data.sha256:
            raise EntryInvalid(f"{entry.data_path} is damaged: its SHA-256 is not the manifest's.")
        with ExitStack() as locks:
            with alone_in(copy.parent):
                # Another process may have made the same copy meanwhile. It is not replaced, since
                # its users have locked that file, not ours.
                if not locks.enter_context(in_use(copy, entry.manifest.data.length)):
                    part.rename(copy)
            yield
    finally:
        part.unlink(missing_ok=True)
        os.close(handle)


def copies_but(storage: Storage, cache_folder: Path, *, keep: Collection[str]) -> list[CachedCopy]:
    """This user's cached copies of the table's entries, except those whose SHA-256 is in `keep`:
    erased data must leave the caches too. Includes abandoned partial copies.

    Raises:
        StorageFailed: the cache is not this user's own.
    """
    folder = copies_folder(cache_folder)
    if not folder.is_dir():
        return []
    require_own(folder)
    prefix = table_prefix(storage)
    copies = []
    with alone_in(folder):
        for path in sorted(copies_in(folder)):
            if not path.name.startswith(prefix):
                continue
            if path.suffix == PART_SUFFIX:
                unwanted = not _is_being_made(path)
            else:
                unwanted = path.stem.removeprefix(prefix) not in keep
            status = status_of(path)
            if unwanted and status is not None:
                copies.append(CachedCopy(path, bytes_of(path, status)))
    return copies


def _is_being_made(part: Path) -> bool:
    with locked(part, fcntl.LOCK_EX | fcntl.LOCK_NB) as is_locked:
        return not is_locked


def discard(copies: Iterable[CachedCopy]) -> None:
    """Deletes copies, even open ones: their readers continue to read."""
    for copy in copies:
        copy.path.unlink(missing_ok=True)


def damaged_copies(storage: Storage, cache_folder: Path) -> list[CachedCopy]:
    """This user's whole copies of the table's entries whose content does not match their names. (In
    copies with gaps, each block is checked before its use, and fetched again if needed.)"""
    return [
        copy
        for copy in copies_but(storage, cache_folder, keep=())
        if copy.path.suffix == WHOLE_SUFFIX
        and checksums(copy.path)[1] != copy.path.stem.split("-", 1)[1]
    ]
