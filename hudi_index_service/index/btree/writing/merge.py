"""Merges indexes of consecutive rows into one: runs of one builder, or parts of a base file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path

import numpy as np
from pyroaring import BitMap

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.btree.keys import ByteKeys, Keys, chained_keys
from hudi_index_service.index.btree.leaf_file import (
    LEAVES,
    TREE,
    LeafFile,
    LeafStore,
    PackedLeaf,
    row_set,
)
from hudi_index_service.index.btree.tree import Branch, Description, LeafPlace, Tree
from hudi_index_service.index.btree.writing.groups import Groups, merged
from hudi_index_service.index.btree.writing.writer import TreeWriter
from hudi_index_service.index.contract import PackedIndex
from hudi_index_service.index.packed_file import read_member

_LEAVES_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class MergeSource:
    """An index to be merged with others."""

    tree: Tree
    leaves: LeafStore
    description: Description

    @classmethod
    def of_folder(cls, folder: Path) -> "MergeSource":
        """A run: its row ids are the base file's."""
        path = folder / LEAVES
        length = path.stat().st_size
        index = PackedIndex(path, {LEAVES: (0, length)}, length, max(length, 1), (), 0)
        tree = Tree((folder / TREE).read_bytes)
        return cls(tree, LeafFile(index), tree.description())

    @classmethod
    def of_part(cls, part: PackedIndex) -> "MergeSource":
        """A part: its row ids begin at 0."""
        tree = Tree(lambda: read_member(part, TREE))
        source = cls(tree, LeafFile(part), tree.description())
        if source.description.rows != part.rows:
            raise EntryInvalid(
                f"{part.path} holds {source.description.rows} rows, not {part.rows}."
            )
        return source

    def close(self) -> None:
        """Closes the index's files."""
        self.leaves.close()

    def rows(self, column: int, branch: Branch) -> BitMap:
        """The rows of a branch that is one set."""
        rows = BitMap()
        for place in self.tree.leaves(column, branch):
            rows |= self.leaves.set(place)
        return rows

    def groups(self, column: int, offset: int, *, has_number_keys: bool) -> Iterator[Groups]:
        """The column's values in order; `offset` is added to each row id."""
        places = iter(self.tree.leaves(column))
        while batch := list(islice(places, _LEAVES_AT_ONCE)):
            bodies = self.leaves.neighbors(batch)
            yield _groups(batch, bodies, offset, has_number_keys=has_number_keys)


def merge(
    sources: Sequence[MergeSource], folder: Path, *, restarts: bool = False
) -> tuple[dict[str, Path], dict[str, int]]:
    """Writes one index over all rows into `folder`.

    Args:
        restarts: Whether the row ids of each source begin at 0.

    Returns:
        The files, and the number of keys by column.

    Raises:
        EntryInvalid: a source is damaged, or they do not have the same columns.
    """
    columns = sources[0].description.columns
    if any(dict(source.description.columns) != dict(columns) for source in sources):
        raise EntryInvalid("Parts of a btree index have different columns.")
    ends = list(accumulate(source.description.rows for source in sources))
    offsets = [0, *ends[:-1]] if restarts else [0] * len(sources)
    writer = TreeWriter(folder)
    try:
        distinct = {}
        for number, (name, has_number_keys) in enumerate(columns.items()):
            writer.begin_column(name, has_number_keys=has_number_keys)
            for branch in (Branch.NULLS, Branch.NULL_ELEMENTS):
                rows = BitMap()
                for source, offset in zip(sources, offsets, strict=True):
                    rows |= source.rows(number, branch).shift(offset)
                writer.nulls(branch, rows)
            streams = [
                source.groups(number, offset, has_number_keys=has_number_keys)
                for source, offset in zip(sources, offsets, strict=True)
            ]
            distinct[name] = writer.values(merged(streams))
        total = ends[-1] if restarts else sources[-1].description.rows
        return writer.finish(total), distinct
    finally:
        writer.close()


def _groups(
    places: list[LeafPlace], bodies: list[bytes], offset: int, *, has_number_keys: bool
) -> Groups:
    """The values of one or more consecutive leaves."""
    keys: list[Keys] = []
    counts: list[np.ndarray] = []
    rows: list[np.ndarray] = [np.zeros(0, dtype=np.uint32)]
    sets: dict[int, BitMap] = {}
    total = 0
    for place, body in zip(places, bodies, strict=True):
        if place.is_set:
            sets[total] = row_set(body).shift(offset)
            keys.append(_only_key(place.key, is_number=has_number_keys))
            counts.append(np.zeros(1, dtype=np.int64))
        else:
            leaf = PackedLeaf(body, place.rows, place.keys)
            keys.append(leaf.keys)
            counts.append(np.diff(leaf.starts))
            rows.append(leaf.rows + np.uint32(offset))
        total += place.keys
    return Groups(chained_keys(keys), np.concatenate(counts), np.concatenate(rows), sets)


def _only_key(key: bytes, *, is_number: bool) -> Keys:
    if is_number:
        return np.array([int.from_bytes(key, "big")], dtype=np.uint64)
    return ByteKeys(np.array([0, len(key)], dtype=np.int64), memoryview(key))
