"""Reads the blocks of a log file: types, headers and positions; and the record keys in them.

A log file is a sequence of blocks (Hudi's `HoodieLogFormat`, version 1; numbers are big-endian):
``#HUDI#``, length of the rest (8 bytes), format version (4), type (4), header, length of the
content (8), content, footer, length of the whole block without this last field (8). Header and
footer are a number of entries (4), each with a key (4), a length (4) and a value.

`read_log_file` does not read the contents. A small file takes one request, a larger one a request
for each block and one more.

`record_keys` finds the keys of every data and delete block, whether it counts or not. A block that
was rolled back, or that no commit has completed, counts for nothing, but only who merges the file
knows that. All keys together are a superset of those whose rows the file changes.

The content of a data block in Avro is a version (4 bytes), the number of records (4), and each
record after its length (4). That of a delete block is a version, a length (4) and a list of Avro
records (Hudi's `HoodieDeleteRecordList`). A record begins with Hudi's meta columns, of which the
third is the key. A writer that has looked up the records in the base file adds their positions
there to the block's header, in the order of the records: a bitmap in Roaring's portable format, in
Base64.
"""

import base64
import io
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import fastavro
import pyarrow as pa
from pyroaring import BitMap64

from hudi_index_service.errors import NeedsSpark
from hudi_index_service.storage.store import Storage

_MAGIC = b"#HUDI#"
_FORMAT_VERSION = 1
_PREFIX = len(_MAGIC) + 8  # magic and length, which the length does not include
_SHORTEST = 32  # a block's length without header entries, content and footer entries
_LONGEST = 2**31 - 1  # Hudi reads the length as an int
_READ_AT_ONCE = 2**16  # bytes

RECORD_KEY = "_hoodie_record_key"

_CONTENT_VERSION = 3
_LEADING_FIELDS = ("_hoodie_commit_time", "_hoodie_commit_seqno", RECORD_KEY)
_NULLABLE_TEXT = ["null", "string"]
_SHORT_TEXT = 2  # the branch of a text, encoded

_NULLABLE_BYTES = ["null", "bytes"]
"""Texts, which need not be decoded: both have the same encoding."""

_ORDERING_VALUES = (
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "bytes",
    "bytes",
    "int",
    "bytes",
    "long",
    "long",
)
"""The types of a delete record's ordering value (Hudi's `HoodieDeleteRecord`), each a record of one
value. A twelfth, an array of them for several ordering fields, is not read."""


def _record(name: str, **fields: Any) -> dict[str, Any]:
    items = [{"name": name, "type": each} for name, each in fields.items()]
    return {"type": "record", "name": name, "fields": items}


_LEADING = fastavro.parse_schema(
    _record("leading", **dict.fromkeys(_LEADING_FIELDS, _NULLABLE_BYTES))
)
_DELETED = fastavro.parse_schema(
    _record(
        "HoodieDeleteRecordList",
        records={
            "type": "array",
            "items": _record(
                "HoodieDeleteRecord",
                key=_NULLABLE_BYTES,
                partition=_NULLABLE_BYTES,
                ordering=[
                    "null",
                    *(_record(f"of{n}", value=each) for n, each in enumerate(_ORDERING_VALUES)),
                ],
            ),
        },
    )
)


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
        blocks: Its whole blocks, in order. The file may end within a further one, because a writer
            died or bytes were lost.
    """

    path: str
    blocks: tuple[LogBlock, ...]


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
    while at < window.size and (block := _block(window, at)) is not None:
        blocks.append(block)
        at = block.end
    return LogFile(window.path, tuple(blocks))


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
        at, overlap = start, len(pattern) - 1
        while self.size - at > overlap:
            self.read(at, min(self.size, at + _READ_AT_ONCE))
            index = self._bytes.find(pattern, max(0, at - self._start))
            if index >= 0:
                return self._start + index
            at = self._start + len(self._bytes) - overlap
        return -1


class LogKeysUnknown(Exception):
    """The record keys in a log file cannot be told from its bytes. The message says why."""


@dataclass(frozen=True, slots=True)
class BlockKeys:
    """The record keys of one block.

    Attributes:
        keys: In the order of the records.
        rows: The row of the base file of `instant` that has each key; None if not known.
    """

    keys: Sequence[bytes]
    rows: Sequence[int] | None = None
    instant: str = ""


def record_keys(log_file: LogFile, data: bytes) -> list[BlockKeys]:
    """The record keys of a log file's whole blocks.

    Args:
        data: The file's bytes.

    Raises:
        LogKeysUnknown: a block has another layout.
    """
    found = []
    for block in log_file.blocks:
        if block.type is BlockType.COMMAND:
            continue
        try:
            keys = _block_keys(block, data[block.content.start : block.content.stop])
        except (LogKeysUnknown, EOFError, LookupError, ValueError, struct.error) as error:
            reason = error if isinstance(error, LogKeysUnknown) else "a value cannot be read"
            raise LogKeysUnknown(f"{log_file.path} at byte {block.start}: {reason}") from error
        rows = _positions(block)
        if rows is None or len(rows) != len(keys):
            found.append(BlockKeys(keys))
        else:
            instant = block.header[HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS]
            found.append(BlockKeys(keys, rows, instant.decode()))
    return found


def _positions(block: LogBlock) -> Sequence[int] | None:
    """The positions of a block's records in a base file; None if it names none."""
    encoded = block.header.get(HeaderKey.RECORD_POSITIONS)
    if not encoded or HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS not in block.header:
        return None
    try:
        return list(BitMap64.deserialize(base64.b64decode(encoded, validate=True)))
    except ValueError:  # another format, or damaged: the keys are searched for
        return None


def _block_keys(block: LogBlock, content: bytes) -> Sequence[bytes]:
    if block.header.get(HeaderKey.IS_PARTIAL, b"").lower() == b"true":
        raise LogKeysUnknown("a block of partial updates")
    match block.type:
        case BlockType.AVRO_DATA:
            return _avro_keys(block, content)
        case BlockType.DELETE:
            return _deleted_keys(content)
        case BlockType.PARQUET_DATA:
            return _parquet_keys(content)
    raise LogKeysUnknown(f"a block of type {block.type.name}")


def _parquet_keys(content: bytes) -> Sequence[bytes]:
    import pyarrow.parquet as pq

    try:
        column = pq.read_table(io.BytesIO(content), columns=[RECORD_KEY]).column(RECORD_KEY)
    except (KeyError, pa.ArrowInvalid, OSError) as error:
        raise LogKeysUnknown("a Parquet block without record keys") from error
    if column.null_count:
        raise LogKeysUnknown("a record without a key")
    keys: list[bytes] = column.cast(pa.binary()).to_pylist()
    return keys


def _avro_keys(block: LogBlock, content: bytes) -> Sequence[bytes]:
    try:
        fields = json.loads(block.header[HeaderKey.SCHEMA])["fields"]
        leading = [(each["name"], each["type"]) for each in fields[: len(_LEADING_FIELDS)]]
    except (ValueError, KeyError, TypeError) as error:
        raise LogKeysUnknown("a block without a schema of records") from error
    if leading != [(name, _NULLABLE_TEXT) for name in _LEADING_FIELDS]:
        raise LogKeysUnknown("records whose third field is not their key")
    version, count = struct.unpack_from(">II", content)
    if version != _CONTENT_VERSION:
        raise LogKeysUnknown(f"records of version {version}")
    keys = []
    at = 8
    for _ in range(count):
        (size,) = struct.unpack_from(">I", content, at)
        keys.append(_third_text(content, at + 4))
        at += 4 + size
    if at != len(content):
        raise LogKeysUnknown("records that end elsewhere")
    return keys


def _third_text(content: bytes, at: int) -> bytes:
    """The third of the texts from a position on. Three texts of less than 64 bytes, as nearly all
    are, take a fifth of the time here."""
    here, start, size = at, 0, 0
    for _ in _LEADING_FIELDS:
        size = content[here + 1]
        if content[here] != _SHORT_TEXT or size >= 0x80:
            leading: Any = fastavro.schemaless_reader(io.BytesIO(content[at:]), _LEADING, None)
            return _not_null(leading[RECORD_KEY])
        start = here + 2
        here = start + (size >> 1)
    if here > len(content):
        raise IndexError
    return content[start:here]


def _deleted_keys(content: bytes) -> Sequence[bytes]:
    version, size = struct.unpack_from(">II", content)
    if version != _CONTENT_VERSION:
        raise LogKeysUnknown(f"deleted records of version {version}")
    stream = io.BytesIO(content)
    stream.seek(8)
    deleted: Any = fastavro.schemaless_reader(stream, _DELETED, None)
    if stream.tell() != 8 + size:
        raise LogKeysUnknown("deleted records that end elsewhere")
    return [_not_null(each["key"]) for each in deleted["records"]]


def _not_null(key: bytes | None) -> bytes:
    if key is None:
        raise LogKeysUnknown("a record without a key")
    return key
