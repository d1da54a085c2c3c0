"""Reads the blocks of a log file: their types, headers and positions, without their records.

A log file is a sequence of blocks (Hudi's `HoodieLogFormat`, version 1; numbers are big-endian):
``#HUDI#``, length of the rest (8 bytes), format version (4), type (4), header, length of the
content (8), content, footer, length of the whole block without this last field (8). Header and
footer are a number of entries (4), each with a key (4), a length (4) and a value.

`read_log_file` does not read the contents. A small file takes one request, a larger one a request
for each block and one more.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from hudi_index_service.errors import NeedsSpark
from hudi_index_service.storage.store import Storage

_MAGIC = b"#HUDI#"
_FORMAT_VERSION = 1
_PREFIX = len(_MAGIC) + 8  # magic and length, which the length does not include
_SHORTEST = 32  # a block's length without header entries, content and footer entries
_LONGEST = 2**31 - 1  # Hudi reads the length as an int
_READ_AT_ONCE = 2**16  # bytes


class BlockType(IntEnum):
    """A block's type by its number in the file (`HoodieLogBlockType`)."""

    COMMAND = 0
    DELETE = 1
    CORRUPTED = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class HeaderKey(IntEnum):
    """The entries of a block's header (`HeaderMetadataType`). A file may have more of them."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


@dataclass(frozen=True, slots=True)
class LogBlock:
    """A whole block.

    Attributes:
        start: Position of its first byte in the file.
        end: Position after its last byte.
        type: Type of its content.
        header: Its entries by their numbers, see `HeaderKey`.
        content: Positions of its content's bytes.
    """

    start: int
    end: int
    type: BlockType
    header: Mapping[int, bytes]
    content: range


@dataclass(frozen=True, slots=True)
class LogFile:
    """The structure of a log file.

    Attributes:
        path: Relative to the table's base path.
        size: Length in bytes.
        blocks: Its whole blocks, in order.
        cut_at: Start of the block within which the file ends, because a writer died or bytes were
            lost. None for a file of whole blocks.
    """

    path: str
    size: int
    blocks: tuple[LogBlock, ...]
    cut_at: int | None = None


def read_log_file(storage: Storage, path: str, size: int) -> LogFile:
    """Reads the structure of a log file's blocks.

    Args:
        size: The file's length in bytes.

    Raises:
        FileNotFoundError: Hudi has cleaned it.
        NeedsSpark: it is neither a sequence of whole blocks nor one that ends within a block; only
            Hudi's own reader handles such a file.
    """

    def read(start: int, end: int) -> bytes:
        (content,) = storage.read_ranges(path, [(start, end)])
        return bytes(content)

    return _log_file(_Window(path, size, read))


def parse_log_file(path: str, data: bytes) -> LogFile:
    """The structure of a log file from its bytes. Raises NeedsSpark as `read_log_file` does."""
    return _log_file(_Window(path, len(data), lambda start, end: data[start:end]))


def _log_file(window: "_Window") -> LogFile:
    blocks: list[LogBlock] = []
    at = 0
    while at < window.size:
        block = _block(window, at)
        if block is None:
            return LogFile(window.path, window.size, tuple(blocks), cut_at=at)
        blocks.append(block)
        at = block.end
    return LogFile(window.path, window.size, tuple(blocks))


def _block(window: "_Window", start: int) -> LogBlock | None:
    """The block at `start`; None if the file ends within it."""
    remaining = window.size - start
    if remaining < len(_MAGIC):
        return None
    if window.read(start, start + len(_MAGIC)) != _MAGIC:
        raise _damaged(window, start, "no block begins there")
    if remaining < _PREFIX:
        # Spark skips it, hudi-rs fails.
        raise _damaged(window, start, "the file ends within a block's length")
    (length,) = struct.unpack(">Q", window.read(start + len(_MAGIC), start + _PREFIX))
    if not _SHORTEST <= length <= _LONGEST:
        raise _damaged(window, start, f"a block of {length} bytes")
    end = start + _PREFIX + length
    if end > window.size:
        if window.find(_MAGIC, start + len(_MAGIC)) >= 0:
            # Hudi continues there, even if those bytes belong to a value.
            raise _damaged(window, start, "a block that is cut off, followed by another")
        return None
    return _whole_block(window, start, end)


def _whole_block(window: "_Window", start: int, end: int) -> LogBlock:
    at = start + _PREFIX
    version, number = struct.unpack(">II", window.read(at, at + 8))
    if version != _FORMAT_VERSION or number not in BlockType.__members__.values():
        raise _damaged(window, start, f"a block of version {version} and type {number}")
    total_at = end - 8
    header, at = _entries(window, start, at + 8, total_at)
    if at + 8 > total_at:
        raise _damaged(window, start, "a header that is longer than its block")
    (size,) = struct.unpack(">Q", window.read(at, at + 8))
    content = range(at + 8, at + 8 + size)
    # The footer, the last length and the next block's header are read together.
    _, footer_end = _entries(window, start, content.stop, total_at)
    (total,) = struct.unpack(">Q", window.read(total_at, end))
    if footer_end != total_at or total != total_at - start:
        raise _damaged(window, start, "a block whose lengths disagree")
    return LogBlock(start, end, BlockType(number), header, content)


def _entries(window: "_Window", start: int, at: int, end: int) -> tuple[dict[int, bytes], int]:
    """The entries of the header or footer at `at`, and its end, which is at most `end`."""

    def take(size: int) -> bytes:
        nonlocal at
        if at + size > end:
            raise _damaged(window, start, "a header or footer that is longer than its block")
        at += size
        return window.read(at - size, at)

    (count,) = struct.unpack(">I", take(4))
    entries = {}
    for _ in range(count):
        key, size = struct.unpack(">II", take(8))
        entries[key] = take(size)
    return entries, at


def _damaged(window: "_Window", at: int, what: str) -> NeedsSpark:
    return NeedsSpark(f"Log file {window.path} is damaged at byte {at}: {what}.")


class _Window:
    """Bytes of a file, read in large pieces.

    Args:
        read: Returns the bytes between two positions.
    """

    def __init__(self, path: str, size: int, read: Callable[[int, int], bytes]) -> None:
        self.path = path
        self.size = size
        self._read = read
        self._start = 0
        self._bytes = b""

    def read(self, start: int, end: int) -> bytes:
        if start < self._start or end > self._start + len(self._bytes):
            stop = min(self.size, max(end, start + _READ_AT_ONCE))
            self._start, self._bytes = start, self._read(start, stop)
        return self._bytes[start - self._start : end - self._start]

    def find(self, pattern: bytes, start: int) -> int:
        """The next position of `pattern` at or after `start`; -1 if there is none."""
        for at in self._pieces(start, overlap=len(pattern) - 1):
            index = self._bytes.find(pattern, max(0, at - self._start))
            if index >= 0:
                return self._start + index
        return -1

    def _pieces(self, start: int, overlap: int) -> Iterator[int]:
        at = start
        while self.size - at > overlap:
            self.read(at, min(self.size, at + _READ_AT_ONCE))
            yield at
            at = self._start + len(self._bytes) - overlap
