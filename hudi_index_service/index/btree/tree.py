"""The inner part of the tree: the first keys and the places of all leaves, in order.

It is an Arrow stream of one batch with two columns: the key, which is the number of the column (two
bytes), the branch (one byte: the rows where the column is NULL, the arrays with a NULL element, or
values), and, for values, the leaf's first key; and the place of the leaf as `LEAF` packs it. The
stream's metadata holds the description of the columns. A leaf for each thousand rows or so: a
reader holds the tree in memory and searches it there.
"""

import json
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self

import pyarrow as pa

from hudi_index_service.arrow import binary_array
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.btree.keys import Keys, position
from hudi_index_service.index.contract import PackedIndex
from hudi_index_service.index.packed_file import read_member

TREE = "tree"
"""The member of a packed index that holds it."""

LAYOUT = 2

LEAF = struct.Struct("<BQIIQIQ")
"""What the tree says of a leaf: the fields of a `LeafPlace` but its key. See docs/format.md."""

_DESCRIPTION = b"description"
_PREFIX = struct.Struct(">HB")
_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd")


class Branch(IntEnum):
    """The part of a column that lies below an inner key."""

    NULLS = 0
    NULL_ELEMENTS = 1
    VALUES = 2


class LeafPlace(NamedTuple):
    """The place of a leaf, and the facts about it that the tree holds.

    Attributes:
        key: The first key; for a set, the only one.
        is_set: Whether it is a set of rows, else a packed leaf.
        offset: Its start among the bytes of all leaves.
        length: Its length in bytes.
        crc32: The checksum of its bytes.
        rows: The number of its rows: pairs of a key and a row id.
        keys: The number of its keys.
        before: The number of rows in the leaves of the same branch before this one.
        prefix: The bytes before its key in the tree: the number of its column, and its branch.
    """

    key: bytes
    is_set: bool
    offset: int
    length: int
    crc32: int
    rows: int
    keys: int
    before: int
    prefix: bytes


@dataclass(frozen=True, slots=True)
class Description:
    """What a tree holds: the rows that it covers, and its columns (whether their keys are numbers)
    in the order of their numbers."""

    rows: int
    columns: Mapping[str, bool]


def write_tree(
    path: Path, keys: Sequence[bytes], leaves: bytes | bytearray, description: Description
) -> None:
    """Writes the tree to `path`.

    Args:
        keys: The prefix of its branch and the first key of each leaf, in order.
        leaves: What the tree says of each leaf: so many records of `LEAF`.
    """
    about = {
        "layout": LAYOUT,
        "rows": description.rows,
        "columns": list(description.columns.items()),
    }
    schema = pa.schema(
        [("key", pa.large_binary()), ("leaf", pa.binary(LEAF.size))],
        metadata={_DESCRIPTION: json.dumps(about)},
    )
    records = pa.py_buffer(bytes(leaves))
    places = pa.Array.from_buffers(pa.binary(LEAF.size), len(keys), [None, records])
    batch = pa.record_batch([binary_array(keys, pa.large_binary()), places], schema=schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=_OPTIONS) as stream:
        stream.write_batch(batch)
    path.write_bytes(sink.getvalue())


def branch_prefix(column: int, branch: Branch) -> bytes:
    """The prefix of a branch's keys, in the order of columns and branches."""
    return _PREFIX.pack(column, branch)


@dataclass(frozen=True, slots=True)
class Leaves:
    """The leaves of one branch, in order; their places are unpacked where they are needed.

    Attributes:
        prefix: See `LeafPlace`.
        first_keys: Of each leaf.
        records: What the tree says of each leaf: so many records of `LEAF`.
    """

    prefix: bytes
    first_keys: list[bytes]
    records: bytes

    def __len__(self) -> int:
        return len(self.first_keys)

    def __iter__(self) -> Iterator[LeafPlace]:
        return map(self.place, range(len(self)))

    def place(self, number: int) -> LeafPlace:
        """The place of a leaf."""
        is_set, *others = LEAF.unpack_from(self.records, number * LEAF.size)
        return LeafPlace._make((self.first_keys[number], bool(is_set), *others, self.prefix))

    @property
    def have_sets(self) -> bool:
        """Whether any leaf is a set."""
        return 1 in self.records[:: LEAF.size]

    def is_set(self, number: int) -> bool:
        """Whether a leaf is a set of rows, else a packed leaf."""
        return self.records[number * LEAF.size] != 0

    def between(self, low: bytes, high: bytes | None) -> range:
        """The numbers of the leaves that may hold keys from `low` on and below `high`."""
        start = max(0, bisect_right(self.first_keys, low) - 1)
        return range(start, len(self) if high is None else bisect_left(self.first_keys, high))

    def of_keys(self, keys: Sequence[bytes]) -> tuple[list[int], list[tuple[int, int]]]:
        """The numbers of the leaves that may hold some of several keys, and which of the keys each
        may hold: [start, end).

        Args:
            keys: In order.
        """
        first_keys, count = self.first_keys, len(keys)
        last = len(first_keys) - 1
        start = bisect_left(keys, first_keys[0]) if first_keys else count
        number = 0
        numbers: list[int] = []
        parts: list[tuple[int, int]] = []
        while start < count:
            number = bisect_right(first_keys, keys[start], number) - 1
            end = count if number == last else bisect_left(keys, first_keys[number + 1], start)
            numbers.append(number)
            parts.append((start, end))
            start = end
        return numbers, parts

    def floor(self, key: bytes) -> LeafPlace | None:
        """The last leaf whose first key is not above a key."""
        number = bisect_right(self.first_keys, key) - 1
        return None if number < 0 else self.place(number)


class Tree:
    """An open tree. Safe to use from several threads, and in forked processes.

    Args:
        load: Returns the bytes that `write_tree` wrote, checked; called for the first look-up.
    """

    def __init__(self, load: Callable[[], bytes]) -> None:
        self._load = load
        self._branches: dict[bytes, Leaves] = {}

    @classmethod
    def of(cls, index: PackedIndex) -> Self:
        """The tree of a packed index.

        Raises:
            EntryInvalid: it is damaged, was written by another release, or covers other rows.
        """
        tree = cls(lambda: read_member(index, TREE))
        rows = tree.description().rows
        if rows != index.rows:
            raise EntryInvalid(f"{index.path} holds {rows} rows, not {index.rows}.")
        return tree

    def leaves(self, column: int, branch: Branch = Branch.VALUES) -> Leaves:
        """The leaves of a branch."""
        prefix = branch_prefix(column, branch)
        leaves = self._branches.get(prefix)
        if leaves is None:
            start, end = (position(self._keys, each) for each in (prefix, _after(prefix)))
            first_keys = [key[_PREFIX.size :] for key in self._keys[start:end].to_pylist()]
            records = bytes(self._records[start * LEAF.size : end * LEAF.size])
            leaves = self._branches[prefix] = Leaves(prefix, first_keys, records)
        return leaves

    def description(self) -> Description:
        """What the tree holds.

        Raises:
            EntryInvalid: it is damaged, or was written by another release.
        """
        try:
            fields = json.loads((self._batch.schema.metadata or {})[_DESCRIPTION])
            layout, rows, columns = fields["layout"], int(fields["rows"]), dict(fields["columns"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise EntryInvalid("A btree index lacks its description.") from error
        if layout != LAYOUT:
            raise EntryInvalid(f"A btree index has layout {layout}; this release reads {LAYOUT}.")
        return Description(rows, columns)

    @cached_property
    def _batch(self) -> pa.RecordBatch:
        try:
            with pa.ipc.open_stream(self._load()) as stream:
                batch = stream.read_next_batch()
            batch.validate(full=True)
        except (pa.ArrowException, OSError, StopIteration, MemoryError) as error:
            raise EntryInvalid("A btree index cannot be unpacked.") from error
        if batch.schema.types != [pa.large_binary(), pa.binary(LEAF.size)]:
            raise EntryInvalid("A btree index holds data other than leaves.")
        return batch

    @property
    def _keys(self) -> Keys:
        return self._batch.column(0)

    @cached_property
    def _records(self) -> memoryview:
        return memoryview(self._batch.column(1).buffers()[1] or b"")


def _after(prefix: bytes) -> bytes:
    """The least byte string above all that begin with the prefix of a branch."""
    column, branch = _PREFIX.unpack(prefix)
    return _PREFIX.pack(column, branch + 1)
