"""Provides a packed data file on the local disk: the file itself if the table is local, else a
checked copy in the user's cache folder (see `cache_folder`). A copy is whole, or for a large file
holds only the blocks requested so far. Copies are named by content, so that a copy of an older
entry is never mistaken for another's.

A copy of blocks is as long as the data file, with gaps. No record lists its blocks: a block is
present if its checksum is the manifest's, which each process checks before the first use. So a
half-written or damaged block counts as missing, and two processes that write a block at once write
the same bytes.
"""

import fcntl
import os
import tempfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count, pairwise
from pathlib import Path
from threading import Lock

from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import PackedIndex
from hudi_index_service.index.files import opened_file
from hudi_index_service.index.files.cache_folder import (
    BLOCKS_SUFFIX,
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
from hudi_index_service.index.packed_file import DataFile, checksums
from hudi_index_service.storage.store import Storage

WHOLE_UP_TO = 8 * 2**20
"""Data files up to this many bytes are copied whole: their transfer takes about as long as one
request. See benchmarks/README.md for the measurements."""

SMALL_MEMBER = 2**20  # bytes; smaller members are fetched whole when the file is opened
NEAR = 2**20  # bytes; gaps up to this size are fetched too, which saves a request
FEWEST, MOST = 2**18, 2**22  # bytes per fetch, doubled for each fetch in a row

_numbers = count(1)


class BlockCopy:
    """Fetches blocks for one open reader; construct it with `block_copy`. Safe to use from several
    threads.

    Attributes:
        number: A number unique within this process.
    """

    def __init__(
        self, storage: Storage, entry: Entry, path: Path, handle: int, settings: Settings
    ) -> None:
        self.number = next(_numbers)
        self._storage = storage
        self._source = entry.data_path
        self._data = entry.manifest.data
        self._crc32s = self._data.crc32s()
        self._path = path
        self._handle = handle
        self._settings = settings
        self._present = bytearray(len(self._crc32s))
        self._next = -1
        self._at_once = 0
        self._lock = Lock()

    def fetch(self, block: int) -> None:
        """Ensures that the file holds the whole block.

        Raises:
            EntryInvalid: the block is damaged in the store, or the data file was deleted.
            PermissionDenied, StorageFailed: the store does not return the block.
        """
        with self._lock:
            if self._is_present(block):
                return
            fewest, most = (self._blocks(size) for size in (FEWEST, MOST))
            self._at_once = min(2 * self._at_once, most) if block == self._next else fewest
            end = block + 1
            while end < min(block + self._at_once, len(self._crc32s)) and not self._is_present(end):
                end += 1
            self._next = end
            self._load([(block, end)])
            if not self._present[block]:
                raise EntryInvalid(f"{self._source}: block {block} is damaged.")

    def fetch_for_opening(self) -> None:
        """Fetches at once what opening an index reads: small members, and the beginning and end of
        each larger one. Raises the errors of `fetch`, except for damaged blocks."""
        with self._lock:
            missing = [each for each in opening_blocks(self._data) if not self._is_present(each)]
            self._load(_merge(missing, self._blocks(NEAR)))

    def unlock(self) -> None:
        """Allows the file to be evicted."""
        with self._lock:
            if self._handle >= 0:
                fcntl.flock(self._handle, fcntl.LOCK_UN)

    def close(self) -> None:
        """Closes the file; nothing can be fetched afterwards."""
        with self._lock:
            if self._handle >= 0:
                os.close(self._handle)
                self._handle = -1

    def _blocks(self, size: int) -> int:
        return max(1, size // self._data.block_size)

    def _is_present(self, block: int) -> bool:
        if self._handle < 0:
            raise EntryInvalid(f"{self._source} is closed.")
        if not self._present[block]:
            size = self._data.block_size
            content = os.pread(self._handle, size, block * size)
            self._present[block] = zlib.crc32(content) == self._crc32s[block]
        return bool(self._present[block])

    def _load(self, spans: list[tuple[int, int]]) -> None:
        """Fetches [start, end) spans of blocks, one request each, and writes the intact blocks."""
        size, length = self._data.block_size, self._data.length
        ranges = [(start * size, min(end * size, length)) for start, end in spans]
        if not ranges:
            return
        total = sum(end - start for start, end in ranges)
        with alone_in(self._path.parent):
            make_room(self._path.parent, total, self._settings, but=self._path)
        try:
            buffers = self._storage.read_ranges(self._source, ranges)
        except FileNotFoundError as error:
            raise EntryInvalid(f"{self._source} is missing.") from error
        opened_file.count(requests=len(ranges), bytes=total)
        for (first, end), buffer in zip(spans, buffers, strict=True):
            content = memoryview(buffer)
            for block in range(first, end):
                piece = content[(block - first) * size : (block - first + 1) * size]
                if zlib.crc32(piece) == self._crc32s[block]:
                    os.pwrite(self._handle, piece, block * size)
                    self._present[block] = True


@contextmanager
def block_copy(
    storage: Storage, entry: Entry, settings: Settings
) -> Iterator[tuple[Path, BlockCopy]]:
    """A copy with the blocks needed for opening, protected from eviction within the block. The
    caller closes it, unless the block fails.

    Raises:
        EntryInvalid: the manifest does not match its data file, or the data file was deleted.
        PermissionDenied, StorageFailed: the store does not return the blocks.
    """
    data = entry.manifest.data
    if len(data.crc32s()) != -(-data.length // data.block_size):
        raise EntryInvalid(f"{entry.folder}: the manifest lacks checksums of some blocks.")
    folder = made_folder(settings)
    path = folder / f"{table_prefix(storage)}{data.sha256}{BLOCKS_SUFFIX}"
    with alone_in(folder):
        handle = _open_file(path, data.length)
        fcntl.flock(handle, fcntl.LOCK_SH)
    blocks = BlockCopy(storage, entry, path, handle, settings)
    try:
        blocks.fetch_for_opening()
        yield path, blocks
        blocks.unlock()
    except BaseException:
        blocks.close()
        raise


def _open_file(path: Path, length: int) -> int:
    """Opens the file, created with the data file's length if needed. A file of another length is
    replaced, not changed, since another process may have mapped it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    if path.is_symlink():
        path.unlink(missing_ok=True)
    handle = os.open(path, flags, 0o600)
    if os.fstat(handle).st_size not in (0, length):
        os.close(handle)
        path.unlink(missing_ok=True)
        handle = os.open(path, flags, 0o600)
    os.ftruncate(handle, length)
    os.utime(handle)  # just used: the last to be evicted
    return handle


def opening_blocks(data: DataFile) -> list[int]:
    """The blocks that opening reads, in order."""
    blocks: set[int] = set()
    for member in data.members:
        if member.length == 0 or member.offset + member.length > data.length:
            continue
        first = member.offset // data.block_size
        last = (member.offset + member.length - 1) // data.block_size
        blocks.update(range(first, last + 1) if member.length <= SMALL_MEMBER else (first, last))
    return sorted(blocks)


def _merge(blocks: Iterable[int], near: int) -> list[tuple[int, int]]:
    """[start, end) spans that cover the blocks; blocks up to `near` apart share a span."""
    numbers = list(blocks)
    if not numbers:
        return []
    breaks = [(a, b) for a, b in pairwise(numbers) if b - a > near]
    starts = [numbers[0], *(b for _, b in breaks)]
    ends = [*(a + 1 for a, _ in breaks), numbers[-1] + 1]
    return list(zip(starts, ends, strict=True))


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
    copy = _whole_copy(storage, entry, settings)
    with ExitStack() as locks:  # against eviction
        if not locks.enter_context(in_use(copy, entry.manifest.data.length)):
            locks.enter_context(_download(storage, entry, copy, settings))
        yield _index_at(entry, copy)


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
    index = data.at(path, rows=entry.manifest.base_file.rows)
    if len(index.block_crc32) != -(-length // data.block_size):
        raise EntryInvalid(f"{entry.folder}: the manifest lacks checksums of some blocks.")
    if any(offset + size > length for offset, size in index.members.values()):
        raise EntryInvalid(f"{entry.folder}: the manifest names bytes beyond the data file.")
    return index


def _whole_copy(storage: Storage, entry: Entry, settings: Settings) -> Path:
    name = f"{table_prefix(storage)}{entry.manifest.data.sha256}{WHOLE_SUFFIX}"
    return made_folder(settings) / name


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
        opened_file.count(requests=1, bytes=part.stat().st_size)
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
