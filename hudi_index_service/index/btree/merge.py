"""Merges indexes of consecutive rows into one: runs of one builder, or parts of a base file. All
leaves are merged in the order of their keys, some of each index at a time; the base file is not
read again."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from hudi_index_service.arrow import as_numbers, binary_array, numbers_array, truths_array
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.btree.keys import Keys, first_of_equal, key_bytes, position
from hudi_index_service.index.btree.leaf_file import (
    LEAVES,
    LeafFile,
    LeafStore,
    PackedLeaf,
    row_set,
)
from hudi_index_service.index.btree.tree import TREE, Branch, Description, LeafPlace, Tree
from hudi_index_service.index.btree.writer import Groups, TreeWriter
from hudi_index_service.index.contract import FileRange, PackedIndex
from hudi_index_service.index.intervals import after

_LEAVES_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class MergeSource:
    """An index to be merged with others."""

    tree: Tree
    leaves: LeafStore

    @property
    def description(self) -> Description:
        """What the tree holds."""
        return self.tree.description()

    @classmethod
    def of_folder(cls, folder: Path) -> "MergeSource":
        """A run of a builder."""
        path = folder / LEAVES
        length = path.stat().st_size
        index = PackedIndex(path, {LEAVES: (0, length)}, length, max(length, 1), (), 0)
        return cls(Tree((folder / TREE).read_bytes), LeafFile(index))

    @classmethod
    def of_part(cls, part: PackedIndex) -> "MergeSource":
        """A part of a base file."""
        return cls(Tree.of(part), LeafFile(part))

    def close(self) -> None:
        """Closes the index's files."""
        self.leaves.close()

    def rows(self, column: int, branch: Branch) -> BitMap:
        """The rows of a branch that is one set."""
        rows = BitMap()
        for place in self.tree.leaves(column, branch):
            rows |= self.leaves.set(place)
        return rows

    def groups(self, column: int, offset: int) -> Iterator[Groups]:
        """The column's values in order; `offset` is added to each row id."""
        has_number_keys = list(self.description.columns.values())[column]
        places = iter(self.tree.leaves(column))
        while batch := list(islice(places, _LEAVES_AT_ONCE)):
            bodies = [self.leaves.body(place) for place in batch]
            yield _groups(batch, bodies, offset, has_number_keys=has_number_keys)


def merge(sources: Sequence[MergeSource], folder: Path) -> tuple[dict[str, Path], dict[str, int]]:
    """Writes one index over all rows into `folder`. The row ids of each source begin at 0.

    Returns:
        The files, and the number of keys by column.

    Raises:
        EntryInvalid: a source is damaged, or they do not have the same columns.
    """
    columns = sources[0].description.columns
    if any(dict(source.description.columns) != dict(columns) for source in sources):
        raise EntryInvalid("Parts of a btree index have different columns.")
    *offsets, total = accumulate((source.description.rows for source in sources), initial=0)
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
                source.groups(number, offset)
                for source, offset in zip(sources, offsets, strict=True)
            ]
            distinct[name] = writer.values(merged(streams))
        return writer.finish(total), distinct
    finally:
        writer.close()


def combine(parts: Sequence[PackedIndex], folder: Path) -> Mapping[str, Path | FileRange]:
    """See `hudi_index_service.index.contract.IndexType.combine`."""
    with ExitStack() as stack:
        sources = []
        for part in parts:
            sources.append(MergeSource.of_part(part))
            stack.callback(sources[-1].close)
        return merge(sources, folder)[0]


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
    return Groups(pa.concat_arrays(keys), np.concatenate(counts), np.concatenate(rows), sets)


def _only_key(key: bytes, *, is_number: bool) -> Keys:
    if is_number:
        return numbers_array(np.array([int.from_bytes(key, "big")], dtype=np.uint64))
    return binary_array([key], pa.large_binary())


def merged(streams: Sequence[Iterable[Groups]]) -> Iterator[Groups]:
    """The groups of several streams as one. Row ids of a stream are below those of the next; no
    stream has a key twice."""
    heads = [_Head(iter(stream)) for stream in streams]
    while True:
        heads = [head for head in heads if head.fill()]
        if not heads:
            return
        if len(heads) == 1:
            yield heads[0].rest()
            continue
        # All keys up to the least of the last ones are present, since the streams are sorted.
        bound = min(head.last for head in heads)
        parts = [part for head in heads if len(part := head.until(bound))]
        yield parts[0] if len(parts) == 1 else _join(parts)


class _Head:
    """The next groups of a stream."""

    def __init__(self, stream: Iterator[Groups]) -> None:
        self._stream = stream
        self._groups: Groups | None = None
        self.last = b""

    def fill(self) -> bool:
        while self._groups is None or not len(self._groups):
            self._groups = next(self._stream, None)
            if self._groups is None:
                return False
            if len(self._groups):
                self.last = key_bytes(self._groups.keys, len(self._groups) - 1)
        return True

    def rest(self) -> Groups:
        groups, self._groups = self._groups, None
        assert groups is not None, "asked after fill"
        return groups

    def until(self, bound: bytes) -> Groups:
        """Removes and returns the groups up to that key."""
        groups = self.rest()
        end = position(groups.keys, after(bound))
        self._groups = groups.slice(end, len(groups))
        return groups.slice(0, end)


def _join(parts: Sequence[Groups]) -> Groups:
    """Joins groups whose row ids ascend from each to the next."""
    keys, order, begins = _sorted_keys([part.keys for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    rows = np.concatenate([part.rows for part in parts])
    starts = np.cumsum(counts) - counts
    ordered_counts = counts[order]
    new_starts = np.cumsum(ordered_counts) - ordered_counts
    rows = rows[np.repeat(starts[order] - new_starts, ordered_counts) + np.arange(len(rows))]
    group = np.cumsum(begins) - 1
    totals = np.bincount(group, weights=ordered_counts, minlength=len(keys)).astype(np.int64)
    sets = _join_sets(parts, order, group)
    if sets:
        rows, totals = _into_sets(sets, rows, totals)
    return Groups(keys, totals, rows, sets)


def _sorted_keys(parts: Sequence[Keys]) -> tuple[Keys, np.ndarray, np.ndarray]:
    """The distinct keys, sorted; the order of all keys, stable for equal ones; and where in that
    order a new key begins."""
    keys = pa.concat_arrays(parts)
    if pa.types.is_uint64(keys.type):  # numpy makes use of the order within each part
        order = np.argsort(as_numbers(keys), kind="stable")
    else:
        order = as_numbers(pc.sort_indices(keys))
    ordered = keys.take(numbers_array(order))
    begins = first_of_equal(ordered)
    return ordered.filter(truths_array(begins)), order, begins


def _join_sets(parts: Sequence[Groups], order: np.ndarray, group: np.ndarray) -> dict[int, BitMap]:
    """The parts' sets by the positions of the joined keys."""
    if not any(part.sets for part in parts):
        return {}
    place = np.empty(len(order), dtype=np.int64)
    place[order] = group
    sets: dict[int, BitMap] = {}
    start = 0
    for part in parts:
        for at, rows in part.sets.items():
            to = int(place[start + at])
            sets[to] = sets[to] | rows if to in sets else rows
        start += len(part)
    return sets


def _into_sets(
    sets: dict[int, BitMap], rows: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Moves the rows of keys that have a set into it."""
    ends = np.cumsum(counts)
    keep = np.ones(len(rows), dtype=bool)
    for at in sets:
        start, end = int(ends[at] - counts[at]), int(ends[at])
        if end > start:
            sets[at] = sets[at] | BitMap(rows[start:end])
            keep[start:end] = False
    counts = counts.copy()
    counts[list(sets)] = 0
    return rows[keep], counts
