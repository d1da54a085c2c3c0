"""Sorted keys with their rows, and the writer of a tree of them: first its leaves, in the order of
their keys, then its inner part."""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from hudi_index_parquet import write_leaves
from pyroaring import BitMap

from hudi_index_service.arrow import truths_array
from hudi_index_service.index.btree.keys import Keys, first_of_equal, key_buffers, key_bytes
from hudi_index_service.index.btree.leaf_file import LEAVES, SET_ROWS, set_bytes
from hudi_index_service.index.btree.tree import (
    LEAF,
    TREE,
    Branch,
    Description,
    branch_prefix,
    write_tree,
)


@dataclass(frozen=True)
class Groups:
    """Sorted keys, each once, and the rows of each.

    Attributes:
        counts: The number of `rows` of each key.
        rows: The row ids; those of one key are adjacent and in order.
        sets: Key's position → rows, for keys that have none in `rows`.
    """

    keys: Keys
    counts: np.ndarray
    rows: np.ndarray
    sets: Mapping[int, BitMap] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def starts(self) -> np.ndarray:
        """The start of each key's rows, followed by the number of rows."""
        return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(self.counts)))

    def slice(self, start: int, end: int) -> "Groups":
        """The groups of the keys [start, end)."""
        first, last = int(self.starts[start]), int(self.starts[end])
        sets = {at - start: rows for at, rows in self.sets.items() if start <= at < end}
        return Groups(self.keys[start:end], self.counts[start:end], self.rows[first:last], sets)


def grouped(keys: Keys, rows: np.ndarray, *, unique: bool) -> Groups:
    """Groups of sorted pairs of a key and a row id.

    Args:
        keys: A key for each row id.
        unique: Whether the same pair may occur several times, and is kept once.
    """
    begins = first_of_equal(keys)
    if unique:
        keep = begins.copy()
        keep[1:] |= rows[1:] != rows[:-1]
        keys, rows, begins = keys.filter(truths_array(keep)), rows[keep], begins[keep]
    starts = np.flatnonzero(begins)
    counts = np.diff(starts, append=len(rows))
    distinct = keys if len(starts) == len(rows) else keys.filter(truths_array(begins))
    return Groups(distinct, counts, rows)


@dataclass(slots=True)
class _Branch:
    """The state of a branch while it is written."""

    prefix: bytes
    rows: int = 0
    keys: int = 0


class TreeWriter:
    """Writes one index to a folder, column by column, with each column's branches in order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = (folder / LEAVES).open("wb")
        self._offset = 0
        self._keys: list[bytes] = []
        self._records = bytearray()
        self._columns: dict[str, bool] = {}

    def begin_column(self, name: str, *, has_number_keys: bool) -> None:
        """Begins the column that the next writes belong to."""
        self._columns[name] = has_number_keys

    def nulls(self, kind: Branch, rows: BitMap) -> None:
        """Writes the rows where the column, or an element of it, is NULL."""
        if rows:
            self._set(self._branch(kind), b"", rows)

    def values(self, stream: Iterable[Groups]) -> int:
        """Writes the column's values. Returns the number of keys."""
        branch = self._branch(Branch.VALUES)
        pending: Groups | None = None
        for groups in stream:
            pending = self._leaves(branch, groups if pending is None else _chain(pending, groups))
        if pending is not None:
            self._packed(branch, pending)
        return branch.keys

    def finish(self, rows: int) -> dict[str, Path]:
        """Completes the index over `rows` rows. Returns its files."""
        self._file.close()
        description = Description(rows, self._columns)
        write_tree(self._folder / TREE, self._keys, self._records, description)
        return {name: self._folder / name for name in (LEAVES, TREE)}

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _branch(self, kind: Branch) -> _Branch:
        return _Branch(branch_prefix(len(self._columns) - 1, kind))

    def _leaves(self, branch: _Branch, groups: Groups) -> Groups:
        """Writes full leaves. Returns the remaining groups for the next one."""
        large = np.flatnonzero(groups.counts >= SET_ROWS).tolist()
        start = 0
        for at in sorted({*large, *groups.sets}):
            self._packed(branch, groups.slice(start, at))
            rows = groups.sets[at] if at in groups.sets else BitMap(groups.slice(at, at + 1).rows)
            self._set(branch, key_bytes(groups.keys, at), rows)
            start = at + 1
        return self._packed(branch, groups.slice(start, len(groups)), keeps_last=True)

    def _packed(self, branch: _Branch, groups: Groups, *, keeps_last: bool = False) -> Groups:
        """Writes packed leaves; with `keeps_last`, without the last one. Returns the groups that
        were not written."""
        if not len(groups):
            return groups
        written = write_leaves(
            *key_buffers(groups.keys),
            groups.counts,
            groups.rows,
            offset=self._offset,
            before=branch.rows,
            keeps_last=keeps_last,
        )
        *firsts, end = written.starts
        keys = [key_bytes(groups.keys, at) for at in firsts]
        self._add(branch, keys, written.bodies, written.records)
        branch.rows += int(groups.starts[end])
        branch.keys += end
        return groups.slice(end, len(groups))

    def _set(self, branch: _Branch, key: bytes, rows: BitMap) -> None:
        body = set_bytes(rows)
        crc32 = zlib.crc32(body)
        record = LEAF.pack(True, self._offset, len(body), crc32, len(rows), 1, branch.rows)
        self._add(branch, [key], body, record)
        branch.rows += len(rows)
        branch.keys += 1

    def _add(self, branch: _Branch, keys: Sequence[bytes], bodies: bytes, records: bytes) -> None:
        self._keys += [branch.prefix + key for key in keys]
        self._records += records
        self._file.write(bodies)
        self._offset += len(bodies)


def _chain(one: Groups, other: Groups) -> Groups:
    """Concatenates two groups; the first has no sets."""
    return Groups(
        pa.concat_arrays([one.keys, other.keys]),
        np.concatenate((one.counts, other.counts)),
        np.concatenate((one.rows, other.rows)),
        {at + len(one): rows for at, rows in other.sets.items()},
    )
