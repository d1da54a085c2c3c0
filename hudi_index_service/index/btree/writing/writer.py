"""Writes a tree: first its leaves, in the order of their keys, then its inner part."""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyroaring import BitMap

from hudi_index_service.index.btree.keys import ByteKeys, Keys, chained_keys, key_bytes
from hudi_index_service.index.btree.leaf_file import LEAVES, TREE
from hudi_index_service.index.btree.leaves import (
    LEAF_KEY_BYTES,
    LEAF_ROWS,
    SET_ROWS,
    packed_leaf,
    packed_set,
)
from hudi_index_service.index.btree.tree import (
    Branch,
    Description,
    LeafPlace,
    branch_prefix,
    write_tree,
)
from hudi_index_service.index.btree.writing.groups import Groups


@dataclass(slots=True)
class _Branch:
    """The state of a branch while it is written."""

    column: int
    kind: Branch
    rows: int = 0
    keys: int = 0


class TreeWriter:
    """Writes one index to a folder, column by column, with each column's branches in order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = (folder / LEAVES).open("wb")
        self._offset = 0
        self._places: list[tuple[int, Branch, LeafPlace]] = []
        self._columns: dict[str, bool] = {}

    def begin_column(self, name: str, *, has_number_keys: bool) -> None:
        """Begins the column that the next writes belong to."""
        self._columns[name] = has_number_keys

    def nulls(self, kind: Branch, rows: BitMap) -> None:
        """Writes the rows where the column, or an element of it, is NULL."""
        if rows:
            self._add_set(_Branch(len(self._columns) - 1, kind), b"", rows)

    def values(self, stream: Iterable[Groups]) -> int:
        """Writes the column's values. Returns the number of keys."""
        branch = _Branch(len(self._columns) - 1, Branch.VALUES)
        pending: Groups | None = None
        for groups in stream:
            merged = groups if pending is None else _chain(pending, groups)
            pending = self._leaves(branch, merged)
        if pending is not None and len(pending):
            self._add_packed(branch, pending.keys, pending.counts, pending.rows)
        return branch.keys

    def finish(self, rows: int) -> dict[str, Path]:
        """Completes the index over `rows` rows. Returns its files."""
        self._file.close()
        write_tree(self._folder / TREE, self._places, Description(rows, self._columns))
        return {name: self._folder / name for name in (LEAVES, TREE)}

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _leaves(self, branch: _Branch, groups: Groups) -> Groups | None:
        """Writes full leaves. Returns the remaining groups for the next one."""
        large = np.flatnonzero(groups.counts >= SET_ROWS).tolist()
        alone = sorted({*large, *groups.sets})
        ends = np.concatenate(([0], np.cumsum(groups.counts)))
        start = 0
        for at in alone:
            self._run(branch, groups, ends, start, at)
            if at in groups.sets:
                rows = groups.sets[at]
            else:
                rows = BitMap(groups.rows[ends[at] : ends[at + 1]])
            self._add_set(branch, key_bytes(groups.keys, at), rows)
            start = at + 1
        return self._run(branch, groups, ends, start, len(groups), keeps_last=True)

    def _run(
        self,
        branch: _Branch,
        groups: Groups,
        ends: np.ndarray,
        start: int,
        end: int,
        *,
        keeps_last: bool = False,
    ) -> Groups | None:
        """Writes packed leaves of the keys [start, end). With `keeps_last`, returns the groups of
        the last leaf instead of writing them."""
        for first, last in _cuts(groups.keys, ends, start, end):
            keys, counts = _slice(groups.keys, first, last), groups.counts[first:last]
            rows = groups.rows[ends[first] : ends[last]]
            if keeps_last and last == end:
                return Groups(keys, counts, rows)
            self._add_packed(branch, keys, counts, rows)
        return None

    def _add_packed(
        self, branch: _Branch, keys: Keys, counts: np.ndarray, rows: np.ndarray
    ) -> None:
        body = packed_leaf(keys, counts, rows)
        self._add(branch, key_bytes(keys, 0), body, is_set=False, rows=len(rows), keys=len(keys))

    def _add_set(self, branch: _Branch, key: bytes, rows: BitMap) -> None:
        self._add(branch, key, packed_set(rows), is_set=True, rows=len(rows), keys=1)

    def _add(
        self, branch: _Branch, key: bytes, body: bytes, *, is_set: bool, rows: int, keys: int
    ) -> None:
        crc32, prefix = zlib.crc32(body), branch_prefix(branch.column, branch.kind)
        place = LeafPlace(
            key, is_set, self._offset, len(body), crc32, rows, keys, branch.rows, prefix
        )
        self._places.append((branch.column, branch.kind, place))
        self._file.write(body)
        self._offset += len(body)
        branch.rows += rows
        branch.keys += keys


def _chain(one: Groups, other: Groups) -> Groups:
    """Concatenates two groups; the first has no sets."""
    return Groups(
        chained_keys((one.keys, other.keys)),
        np.concatenate((one.counts, other.counts)),
        np.concatenate((one.rows, other.rows)),
        {at + len(one): rows for at, rows in other.sets.items()},
    )


def _slice(keys: Keys, start: int, end: int) -> Keys:
    return keys.slice(start, end) if isinstance(keys, ByteKeys) else keys[start:end]


def _cuts(keys: Keys, ends: np.ndarray, start: int, end: int) -> Iterator[tuple[int, int]]:
    """[first, last) of the keys of each packed leaf; at least one key."""
    while start < end:
        last = int(np.searchsorted(ends, ends[start] + LEAF_ROWS, side="right")) - 1
        if isinstance(keys, ByteKeys):
            bound = keys.offsets[start] + LEAF_KEY_BYTES
            last = min(last, int(np.searchsorted(keys.offsets, bound, side="right")) - 1)
        last = min(max(last, start + 1), end)
        yield start, last
        start = last
