"""Writes a tree: first its leaves, in the order of their keys, then its inner part."""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hudi_index_parquet import write_leaves
from pyroaring import BitMap

from hudi_index_service.index.btree.keys import ByteKeys, chained_keys, key_bytes
from hudi_index_service.index.btree.leaf_file import LEAVES, SET_ROWS, TREE, set_bytes
from hudi_index_service.index.btree.tree import (
    LEAF,
    Branch,
    Description,
    branch_prefix,
    write_tree,
)
from hudi_index_service.index.btree.writing.groups import Groups


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
            groups.keys.data.cast("B") if isinstance(groups.keys, ByteKeys) else groups.keys,
            groups.keys.offsets if isinstance(groups.keys, ByteKeys) else None,
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
        chained_keys((one.keys, other.keys)),
        np.concatenate((one.counts, other.counts)),
        np.concatenate((one.rows, other.rows)),
        {at + len(one): rows for at, rows in other.sets.items()},
    )
