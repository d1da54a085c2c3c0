"""A copy of the requested blocks of a large data file, in the user's cache folder.

The copy is as long as the data file, with gaps. No record lists its blocks: a block is present if
its checksum is the manifest's, which each process checks before the first use. So a half-written or
damaged block counts as missing, and two processes that write a block at once write the same bytes.
"""

import fcntl
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count, pairwise
from pathlib import Path
from threading import Lock

from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.files import io_counters
from hudi_index_service.index.files.cache_folder import (
    BLOCKS_SUFFIX,
    alone_in,
    made_folder,
    make_room,
    table_prefix,
)
from hudi_index_service.index.metadata.entry import Entry
from hudi_index_service.index.metadata.manifest import DataFile
from hudi_index_service.storage.store import Storage

_SMALL_MEMBER = 2**20  # bytes; smaller members are fetched whole when the file is opened
_NEAR = 2**20  # bytes; gaps up to this size are fetched too, which saves a request
_FEWEST, _MOST = 2**18, 2**22  # bytes per fetch, doubled for each fetch in a row

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
            fewest, most = (self._blocks(size) for size in (_FEWEST, _MOST))
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
            missing = [each for each in _opening_blocks(self._data) if not self._is_present(each)]
            self._load(_merge(missing, self._blocks(_NEAR)))

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
        io_counters.count(requests=len(ranges), bytes=total)
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


def _opening_blocks(data: DataFile) -> list[int]:
    """The blocks that opening reads, in order."""
    blocks: set[int] = set()
    for member in data.members:
        if member.length == 0 or member.offset + member.length > data.length:
            continue
        first = member.offset // data.block_size
        last = (member.offset + member.length - 1) // data.block_size
        blocks.update(range(first, last + 1) if member.length <= _SMALL_MEMBER else (first, last))
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
