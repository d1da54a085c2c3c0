"""Rows grouped by key, to be sorted, merged and written."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from hudi_index_service.arrow import as_numbers, as_truths, numbers_array, truths_array
from hudi_index_service.index.btree.intervals import after
from hudi_index_service.index.btree.keys import ByteKeys, Keys, key_bytes, position


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
        keys = (
            self.keys.slice(start, end) if isinstance(self.keys, ByteKeys) else self.keys[start:end]
        )
        first, last = int(self.starts[start]), int(self.starts[end])
        sets = {at - start: rows for at, rows in self.sets.items() if start <= at < end}
        return Groups(keys, self.counts[start:end], self.rows[first:last], sets)


def grouped(keys: Keys, rows: np.ndarray, *, unique: bool) -> Groups:
    """Groups of sorted pairs of a key and a row id.

    Args:
        keys: A key for each row id.
        unique: Whether the same pair may occur several times, and is kept once.
    """
    begins = np.ones(len(rows), dtype=bool)
    if isinstance(keys, ByteKeys):
        array = keys.to_arrow()
        begins[1:] = as_truths(pc.not_equal(array[1:], array[:-1]))
    else:
        begins[1:] = keys[1:] != keys[:-1]
    if unique:
        keep = begins.copy()
        keep[1:] |= rows[1:] != rows[:-1]
        rows, begins = rows[keep], begins[keep]
        keys = _take(keys, np.flatnonzero(keep))
    starts = np.flatnonzero(begins)
    counts = np.diff(starts, append=len(rows))
    return Groups(keys if len(starts) == len(rows) else _take(keys, starts), counts, rows)


def _take(keys: Keys, at: np.ndarray) -> Keys:
    if isinstance(keys, ByteKeys):
        return ByteKeys.of(keys.to_arrow().take(numbers_array(at)))
    numbers: np.ndarray = keys[at]
    return numbers


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
    if all(isinstance(part, ByteKeys) for part in parts):
        arrays = [part.to_arrow() for part in parts if isinstance(part, ByteKeys)]
        array = pa.concat_arrays(arrays)
        order = as_numbers(pc.sort_indices(array))
        array = array.take(numbers_array(order))
        begins = np.ones(len(order), dtype=bool)
        begins[1:] = as_truths(pc.not_equal(array[1:], array[:-1]))
        return ByteKeys.of(array.filter(truths_array(begins))), order, begins
    numbers = np.concatenate([np.asarray(part) for part in parts])
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = numbers[1:] != numbers[:-1]
    return numbers[begins], order, begins


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
