"""Leaves of the tree: some rows in the order of their keys, or the set of one key's rows.

A packed leaf has a header (`HEADER`), the row ids, the number of rows of each key (unless each has
one), and the keys. Numbers are stored as differences from the least one of the leaf, in as few
bytes each as fit them all, so that one is read without the others. Byte keys are stored as their
common prefix, the lengths of the suffixes, and the concatenated suffixes; compressed if that saves
two fifths. A set is a Roaring bitmap in its portable form.
"""

import struct
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from hudi_index_service.arrow import binary_scalar
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.btree.keys import CUT_BYTES, ByteKeys, Keys, lowest_number

LEAF_ROWS = 512
"""Rows in a packed leaf, at most."""

LEAF_KEY_BYTES = 32 * 1024
"""Bytes of keys in a packed leaf, at most, unless one key alone has more."""

SET_ROWS = 512
"""Keys with so many rows or more have a leaf of their own, which holds them as a set."""

HEADER = struct.Struct("<BBBBIQII")
"""Of a packed leaf: widths in bytes of keys (0: they are bytes), counts (0: each is 1) and row ids;
how the keys are compressed; the least row id and key; bytes of the keys as stored, and before
compression. See docs/format.md."""
_COUNT_TYPES = {1: np.uint8, 2: np.uint16}
_LENGTH = struct.Struct("<H")  # of the common prefix of all byte keys, and of each suffix

# Unpacking some kilobytes by LZ4 takes as long as all else that is done to search a leaf, and by
# Zstandard ten times as long. So each must save much.
_CODECS = {1: "lz4_raw", 2: "zstd"}
_LZ4, _ZSTD = _CODECS
_WORTH_LZ4 = 0.6  # of the size as it is
_WORTH_ZSTD = 0.75  # of the size by LZ4
_LEAST_FOR_ZSTD = 8 * 1024


class PackedLeaf:
    """Rows in the order of their keys; those of one key in the order of their ids.

    Args:
        rows: The number of rows, that is, pairs of a key and a row id.
        keys: The number of keys.

    Raises:
        EntryInvalid: the bytes are not a packed leaf.
    """

    def __init__(self, body: bytes, rows: int, keys: int) -> None:
        self._body = body
        self.row_count, self.key_count = rows, keys
        if len(body) < HEADER.size:
            raise _broken("header")
        (
            self._key_width, self._count_width, self._row_width, self._codec,
            self._base_row, self._base_key, self._stored_size, self._raw_size,
        ) = HEADER.unpack_from(body)  # fmt: skip
        self._counts_at = HEADER.size + self._row_width * rows
        self._keys_at = self._counts_at + self._count_width * keys
        valid_widths = self._row_width in (1, 2, 3, 4), self._key_width <= 8
        valid_codec = self._codec == 0 or self._codec in _CODECS
        valid_counts = self._count_width in _COUNT_TYPES or (not self._count_width and keys == rows)
        if not (
            all(valid_widths)
            and valid_counts
            and valid_codec
            and len(body) == self._keys_at + self._stored_size
        ):
            raise _broken("length")

    def rows_between(self, start: int, end: int) -> np.ndarray:
        """The row ids of [start, end), as unsigned 32-bit integers."""
        width = self._row_width
        first = HEADER.size + width * start
        raw = self._body[first : first + width * max(0, end - start)]
        return _widen(raw, width, 4).view("<u4") + np.uint32(self._base_row)

    @property
    def rows(self) -> np.ndarray:
        """All row ids."""
        return self.rows_between(0, self.row_count)

    @property
    def starts(self) -> np.ndarray:
        """The start of each key's rows, followed by the number of rows."""
        if not self._count_width:
            return np.arange(self.key_count + 1)
        ends = np.zeros(self.key_count + 1, dtype=np.int64)
        np.cumsum(self._counts(self.key_count), out=ends[1:])
        if ends[-1] != self.row_count:
            raise _broken("counts")
        return ends

    @property
    def keys(self) -> Keys:
        """The keys, each once, in order."""
        if self._key_width:
            numbers = _widen(self._key_bytes, self._key_width, 8).view("<u8")
            return numbers + np.uint64(self._base_key)
        prefix, ends, suffixes = self._byte_keys
        offsets = np.concatenate((np.zeros(1, dtype=np.int64), ends))
        keys = ByteKeys(offsets, memoryview(suffixes))
        if not prefix:
            return keys
        start = binary_scalar(prefix, pa.large_binary())
        nothing = binary_scalar(b"", pa.large_binary())
        return ByteKeys.of(pc.binary_join_element_wise(start, keys.to_arrow(), nothing))

    def span(self, low: bytes, high: bytes | None) -> tuple[int, int]:
        """[start, end) of the rows with keys from `low` on and below `high`; None for no bound."""
        find = self._number_position if self._key_width else self._bytes_position
        first = find(low, 0) if low else 0
        if high is None:
            last = self.key_count
        elif high == low + b"\0":  # a single key
            last = first + (first < self.key_count and find(high, first, first + 1) > first)
        else:
            last = find(high, first)
        if not self._count_width:
            return first, last
        counts = self._counts(last)
        start = int(counts[:first].sum())
        return start, start + int(counts[first:].sum())

    def _counts(self, keys: int) -> np.ndarray:
        """The number of rows of each of the first keys."""
        counts = self._body[self._counts_at : self._counts_at + self._count_width * keys]
        return np.frombuffer(counts, dtype=_COUNT_TYPES[self._count_width])

    def _number_position(self, bound: bytes, low: int, high: int | None = None) -> int:
        """The number of keys below the bound, known to be from `low` to `high`. Decodes only the
        keys that it compares."""
        raw, width = self._key_bytes, self._key_width
        target = lowest_number(bound) - self._base_key
        high = self.key_count if high is None else high
        while low < high:
            middle = (low + high) // 2
            at = middle * width
            if int.from_bytes(raw[at : at + width], "little") < target:
                low = middle + 1
            else:
                high = middle
        return low

    def _bytes_position(self, bound: bytes, low: int, high: int | None = None) -> int:
        prefix, places, suffixes = self._byte_keys
        ends = places.data  # its items are plain integers
        high = self.key_count if high is None else high
        if not bound.startswith(prefix):
            return low if bound < prefix else high
        target = bound[len(prefix) :]
        while low < high:
            middle = (low + high) // 2
            start = ends[middle - 1] if middle else 0
            if suffixes[start : ends[middle]] < target:
                low = middle + 1
            else:
                high = middle
        return low

    @cached_property
    def _byte_keys(self) -> tuple[bytes, np.ndarray, bytes]:
        """The common prefix of all keys, the end of each suffix, and the suffixes."""
        raw = self._key_bytes
        (length,) = _LENGTH.unpack_from(raw)
        at = _LENGTH.size + length
        suffixes_at = at + _LENGTH.size * self.key_count
        if suffixes_at > len(raw):
            raise _broken("keys")
        ends = np.cumsum(np.frombuffer(raw[at:suffixes_at], dtype="<u2"), dtype=np.int64)
        if ends[-1] != len(raw) - suffixes_at:
            raise _broken("keys")
        return raw[_LENGTH.size : at], ends, raw[suffixes_at:]

    @cached_property
    def _key_bytes(self) -> bytes:
        content = self._body[self._keys_at :]
        least = self.key_count * self._key_width or _LENGTH.size * (1 + self.key_count)
        try:
            raw: bytes = (
                pa.decompress(
                    content,
                    decompressed_size=self._raw_size,
                    codec=_CODECS[self._codec],
                    asbytes=True,
                )
                if self._codec
                else content
            )
        except (OSError, ValueError) as error:
            raise _broken("compression") from error
        if (
            len(raw) != self._raw_size
            or len(raw) < least
            or (self._key_width and len(raw) != least)
        ):
            raise _broken("keys")
        return raw


def packed_leaf(keys: Keys, counts: np.ndarray, rows: np.ndarray) -> bytes:
    """The bytes of a leaf of sorted keys; each has fewer than 65,536 rows, sorted by id."""
    base_row = int(rows.min())
    row_width, row_bytes = _narrow(rows - np.uint32(base_row))
    if isinstance(keys, ByteKeys):
        key_width, base_key = 0, 0
        key_bytes = _byte_key_block(keys)
    else:
        base_key = int(keys[0])
        key_width, key_bytes = _narrow(keys - np.uint64(base_key))
    count_width = 0 if len(keys) == len(rows) else 1 if counts.max() < 256 else 2
    count_bytes = counts.astype(_COUNT_TYPES[count_width]).tobytes() if count_width else b""
    codec, content = (0, key_bytes) if key_width else _compress(key_bytes)
    header = HEADER.pack(
        key_width, count_width, row_width, codec,
        base_row, base_key, len(content), len(key_bytes),
    )  # fmt: skip
    return b"".join((header, row_bytes, count_bytes, content))


def _byte_key_block(keys: ByteKeys) -> bytes:
    """Sorted byte keys as stored: their common prefix, and the suffixes."""
    prefix = _common_prefix(keys[0], keys[len(keys) - 1])
    lengths = np.diff(keys.offsets) - len(prefix)
    suffixes = ByteKeys.of(pc.binary_slice(keys.to_arrow(), len(prefix), CUT_BYTES))
    first, last = int(suffixes.offsets[0]), int(suffixes.offsets[-1])
    header = _LENGTH.pack(len(prefix)) + prefix + lengths.astype("<u2").tobytes()
    return header + bytes(suffixes.data[first:last])


def _common_prefix(one: bytes, other: bytes) -> bytes:
    pairs = enumerate(zip(one, other, strict=False))
    length = next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
    return one[:length]


def row_set(body: bytes) -> BitMap:
    """The rows of a leaf that is a set."""
    try:
        return BitMap.deserialize(body)
    except (ValueError, IndexError) as error:
        raise _broken("set") from error


def packed_set(rows: BitMap) -> bytes:
    """The bytes of a leaf that is a set."""
    rows.run_optimize()
    return bytes(rows.serialize())


def _narrow(values: np.ndarray) -> tuple[int, bytes]:
    """The least width in bytes, from 1, that fits all integers, and their little-endian bytes."""
    width = max(1, (int(values.max()).bit_length() + 7) // 8)
    size = values.dtype.itemsize
    return width, values.view(np.uint8).reshape(-1, size)[:, :width].tobytes()


def _widen(raw: bytes, width: int, size: int) -> np.ndarray:
    """The bytes of little-endian integers, extended from `width` to `size` bytes each."""
    source = np.frombuffer(raw, dtype=np.uint8)
    if width == size:
        return source
    values = np.zeros((len(source) // width, size), dtype=np.uint8)
    values[:, :width] = source.reshape(-1, width)
    return values.reshape(-1)


def _compress(raw: bytes) -> tuple[int, bytes]:
    """The codec and the compressed bytes; 0 and the same bytes if it saves too little."""
    quick: bytes = pa.compress(raw, codec=_CODECS[_LZ4], asbytes=True)
    if len(raw) >= _LEAST_FOR_ZSTD:
        small: bytes = pa.compress(raw, codec=_CODECS[_ZSTD], asbytes=True)
        if len(small) <= _WORTH_ZSTD * len(quick):
            return _ZSTD, small
    return (_LZ4, quick) if len(quick) <= _WORTH_LZ4 * len(raw) else (0, raw)


def _broken(part: str) -> EntryInvalid:
    return EntryInvalid(f"A leaf of a btree index contradicts itself: {part}.")
