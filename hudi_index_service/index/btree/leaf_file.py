"""Leaves of the tree: some rows in the order of their keys, or the set of one key's rows; and the
reader of one entry's leaves from its packed file, which checks each one.

A packed leaf has up to some hundred keys with their rows; the row reader writes, unpacks and
searches it. A set is a Roaring bitmap in its portable form. See docs/format.md.
"""

import os
import weakref
import zlib
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from hudi_index_parquet import ParquetReadError, SomeLeaves, read_leaf
from pyroaring import BitMap

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.btree.keys import Keys, position
from hudi_index_service.index.btree.tree import LeafPlace, Leaves
from hudi_index_service.index.contract import PackedIndex

LEAVES = "leaves"

SET_ROWS = 512
"""Keys with so many rows or more have a leaf of their own, which holds them as a set."""

Find: TypeAlias = Callable[[int | Sequence[bytes], SomeLeaves], bytes | None]
"""A search in leaves of a file or in memory: `rows_between` or `rows_of_keys` of the row reader."""

_CACHED_LEAVES = 16  # decoded leaves


class PackedLeaf:
    """A packed leaf; the rows of one key are in the order of their ids.

    Args:
        rows: The number of rows, that is, pairs of a key and a row id.
        keys: The number of keys.

    Attributes:
        keys: Each once, in order.
        starts: The start of each key's rows, followed by the number of rows.
        rows: All row ids, as unsigned 32-bit integers.

    Raises:
        EntryInvalid: the bytes are not a packed leaf.
    """

    def __init__(self, body: bytes, rows: int, keys: int) -> None:
        try:
            leaf = read_leaf(body, rows, keys)
        except ParquetReadError as error:
            raise _invalid(error) from error
        kind, buffers = pa.uint64(), [None, pa.py_buffer(leaf.keys)]
        if leaf.key_offsets is not None:
            kind = pa.large_binary()
            buffers.insert(1, pa.py_buffer(leaf.key_offsets))
        self.keys: Keys = pa.Array.from_buffers(kind, keys, buffers)
        self.starts = np.frombuffer(leaf.starts, dtype=np.int64)
        self.rows = np.frombuffer(leaf.rows, dtype=np.uint32)

    def rows_below(self, bound: bytes) -> int:
        """The number of rows with keys below a byte string."""
        return int(self.starts[position(self.keys, bound)])


def row_set(body: bytes) -> BitMap:
    """The rows of a leaf that is a set.

    Raises:
        EntryInvalid: the bytes are not a set.
    """
    try:
        return BitMap.deserialize(body)
    except (ValueError, IndexError) as error:
        raise EntryInvalid("A leaf of a btree index contradicts itself: set.") from error


def set_bytes(rows: BitMap) -> bytes:
    """The bytes of a leaf that is a set."""
    rows.run_optimize()
    return bytes(rows.serialize())


class LeafStore(ABC):
    """A source of a tree's leaves. Safe to use from several threads, and in forked processes.

    Every method but `close` may raise EntryInvalid (a leaf is missing or damaged) or StorageFailed.

    Attributes:
        source: The source's name, for messages.
    """

    source: str

    @abstractmethod
    def body(self, place: LeafPlace) -> bytes:
        """The bytes of a leaf, checked."""

    @abstractmethod
    def rows(self, leaves: Leaves, numbers: list[int], find: Find) -> bytes:
        """The row ids that a search finds in packed leaves, which are some of a branch."""

    def packed(self, place: LeafPlace) -> PackedLeaf:
        """A packed leaf."""
        return PackedLeaf(self.body(place), place.rows, place.keys)

    def set(self, place: LeafPlace) -> BitMap:
        """The rows of a leaf that is a set."""
        rows = row_set(self.body(place))
        if len(rows) != place.rows:
            raise EntryInvalid(f"{self.source}: a set has {len(rows)} rows, not {place.rows}.")
        return rows

    def expect(self, places: Iterable[LeafPlace]) -> None:  # noqa: B027 - read on demand
        """Announces the leaves read next; if each would cost a request, fetches them together."""

    def close(self) -> None:  # noqa: B027 - nothing is open
        """Releases all resources."""


def found(
    find: Find,
    source: int | Sequence[bytes],
    leaves: Leaves,
    numbers: list[int],
    start: int = 0,
) -> bytes | None:
    """The row ids that a search finds; None if a leaf does not have its checksum.

    Args:
        numbers: Of the leaves to search.
        start: The offset of the first leaf of all branches in the source.

    Raises:
        EntryInvalid: a leaf contradicts itself, or the file cannot be read.
    """
    try:
        return find(source, SomeLeaves(leaves.records, numbers, start))
    except ParquetReadError as error:
        raise _invalid(error) from error
    except OSError as error:
        raise EntryInvalid(f"Leaves cannot be read: {error.strerror}.") from error


def _invalid(error: ParquetReadError) -> EntryInvalid:
    reason = str(error)
    return EntryInvalid(f"{reason[:1].upper()}{reason[1:]}.")


def checked(body: bytes, place: LeafPlace, source: str) -> bytes:
    """The bytes of a leaf.

    Args:
        source: Where the bytes were read, for the message.

    Raises:
        EntryInvalid: the bytes do not have the leaf's checksum.
    """
    if not _is_sound(body, place):
        raise EntryInvalid(f"{source}: the leaf at {place.offset} is damaged.")
    return body


class LeafFile(LeafStore):
    """Reads leaves from a packed file.

    Raises:
        EntryInvalid: the packed file cannot be opened, or has no leaves.
    """

    def __init__(self, index: PackedIndex) -> None:
        if LEAVES not in index.members:
            raise EntryInvalid(f"{index.path} has no member {LEAVES}.")
        self._index = index
        self.source = str(index.path)
        self._start, self._length = index.members[LEAVES]
        try:
            self._handle = os.open(index.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise EntryInvalid(f"{index.path} cannot be read: {error.strerror}.") from error
        self._close = weakref.finalize(self, os.close, self._handle)
        self._leaf_cache: OrderedDict[int, PackedLeaf] = OrderedDict()

    def packed(self, place: LeafPlace) -> PackedLeaf:
        """A packed leaf; the last ones are cached."""
        leaf = self._leaf_cache.get(place.offset)
        if leaf is None:
            leaf = super().packed(place)
            self._leaf_cache[place.offset] = leaf
            if len(self._leaf_cache) > _CACHED_LEAVES:
                self._forget()
        return leaf

    def _forget(self) -> None:
        try:
            self._leaf_cache.popitem(last=False)
        except KeyError:  # another thread was faster
            return

    def rows(self, leaves: Leaves, numbers: list[int], find: Find) -> bytes:
        """The row ids that a search finds in packed leaves, which are some of a branch."""
        self._refuse_closed()
        rows = found(find, self._handle, leaves, numbers, self._start)
        if rows is None:  # a block is missing, or damaged
            bodies = [self.body(leaves.place(number)) for number in numbers]
            rows = found(find, bodies, leaves, numbers)
        assert rows is not None, "each leaf has been checked"
        return rows

    def close(self) -> None:
        """Closes the file."""
        self._close()

    def body(self, place: LeafPlace) -> bytes:
        """The bytes of a leaf."""
        body = self._bytes(place.offset, place.length)
        if _is_sound(body, place):
            return body
        if self._index.blocks is not None:
            size, start = self._index.block_size, self._start + place.offset
            for block in range(start // size, (start + place.length - 1) // size + 1):
                self._index.blocks.fetch(block)
            body = self._bytes(place.offset, place.length)
        return checked(body, place, self.source)

    @property
    def opened(self) -> tuple[int, int]:
        """The descriptor of the open file, and the offset of its first leaf."""
        self._refuse_closed()
        return self._handle, self._start

    def _refuse_closed(self) -> None:
        if not self._close.alive:
            raise EntryInvalid(f"{self._index.path} is closed.")

    def _bytes(self, offset: int, length: int) -> bytes:
        if offset + length > self._length:
            raise EntryInvalid(f"{self._index.path} ends before a leaf does.")
        self._refuse_closed()
        try:
            return os.pread(self._handle, length, self._start + offset)
        except OSError as error:
            raise EntryInvalid(f"{self._index.path} cannot be read: {error.strerror}.") from error


def _is_sound(body: bytes, place: LeafPlace) -> bool:
    return len(body) == place.length and zlib.crc32(body) == place.crc32
