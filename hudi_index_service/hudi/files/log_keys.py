"""Finds the record keys in a log file: of every data and delete block, whether it counts or not.

A block that was rolled back, or that no commit has completed, counts for nothing, but only who
merges the file knows that. All keys together are a superset of those whose rows the file changes.

The content of a data block in Avro is a version (4 bytes), the number of records (4), and each
record after its length (4). That of a delete block is a version, a length (4) and a list of Avro
records (Hudi's `HoodieDeleteRecordList`). A record begins with Hudi's meta columns, of which the
third is the key.

A writer that has looked up the records in the base file adds their positions there to the block's
header, in the order of the records: a bitmap in Roaring's portable format, in Base64.
"""

import base64
import io
import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyroaring import BitMap64

from hudi_index_service.hudi.files.log_file import BlockType, HeaderKey, LogBlock, LogFile

RECORD_KEY = "_hoodie_record_key"

_CONTENT_VERSION = 3
_LEADING_FIELDS = ("_hoodie_commit_time", "_hoodie_commit_seqno", RECORD_KEY)
_NULLABLE_TEXT = ["null", "string"]
_NULL, _TEXT = 0, 1
_SHORT_TEXT = 2  # the branch of a text, encoded

# The branches of a delete record's ordering value (Hudi's `HoodieDeleteRecord`), each a record of
# one value. A twelfth, an array of them for several ordering fields, is not read.
_ORDERING_VALUES = (
    "null",
    1,
    "number",
    "number",
    4,
    8,
    "bytes",
    "bytes",
    "number",
    "bytes",
    "number",
    "number",
)
"""``number`` is a number of variable length, ``bytes`` one of them and as many bytes; other values
have this many bytes."""


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
        except LogKeysUnknown as error:
            raise LogKeysUnknown(f"{log_file.path} at byte {block.start}: {error}") from error
        except (IndexError, struct.error) as error:
            reason = f"{log_file.path} at byte {block.start}: a value ends beyond its block"
            raise LogKeysUnknown(reason) from error
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
            avro = _Avro(content, at)
            avro.text()
            avro.text()
            return avro.key()
        start = here + 2
        here = start + (size >> 1)
    if here > len(content):
        raise IndexError
    return content[start:here]


def _deleted_keys(content: bytes) -> Sequence[bytes]:
    version, size = struct.unpack_from(">II", content)
    if version != _CONTENT_VERSION:
        raise LogKeysUnknown(f"deleted records of version {version}")
    avro = _Avro(content, 8)
    keys = []
    for _ in avro.items():
        keys.append(avro.key())
        avro.text()  # its partition
        avro.skip_ordering_value()
    if avro.at != 8 + size:
        raise LogKeysUnknown("deleted records that end elsewhere")
    return keys


class _Avro:
    """Values in Avro's binary encoding.

    Attributes:
        at: The position of the next one.
    """

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self.at = at

    def key(self) -> bytes:
        """A text that must not be NULL."""
        text = self.text()
        if text is None:
            raise LogKeysUnknown("a record without a key")
        return text

    def text(self) -> bytes | None:
        """A union of NULL and text."""
        branch = self._number()
        if branch not in (_NULL, _TEXT):
            raise LogKeysUnknown("a field that is no text")
        return self._bytes() if branch == _TEXT else None

    def items(self) -> Iterator[int]:
        """The numbers of an array's items, each to be read next."""
        while count := self._number():
            if count < 0:
                count = -count
                self._number()  # the bytes of this block of items
            yield from range(count)

    def skip_ordering_value(self) -> None:
        """Skips a delete record's ordering value."""
        branch = self._number()
        if not 0 <= branch < len(_ORDERING_VALUES):
            raise LogKeysUnknown("a deleted record with several ordering values")
        match _ORDERING_VALUES[branch]:
            case int(size):
                self.at += size
            case "number":
                self._number()
            case "bytes":
                self._bytes()

    def _bytes(self) -> bytes:
        size = self._number()
        start, self.at = self.at, self.at + size
        if size < 0 or self.at > len(self._data):
            raise IndexError
        return self._data[start : self.at]

    def _number(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
