"""Counts the rows with keys in an interval, reading at most the leaves at its ends."""

from collections.abc import Sequence

from hudi_index_service.index.btree.intervals import Interval, Intervals
from hudi_index_service.index.btree.leaf_file import LeafStore
from hudi_index_service.index.btree.tree import LeafPlace, Tree

_FEW_INTERVALS = 8  # intervals; with more, the leaves at their ends are not read
_SAMPLE_INTERVALS = 64
_ABOVE_ALL = b"\xff" * 512


class Counter:
    """Counts rows, that is pairs of a key and a row, from the numbers in the tree's inner keys.

    Args:
        leaves: The leaves, of which those at the ends of a few intervals are read; None to read
            none.
    """

    def __init__(self, tree: Tree, leaves: LeafStore | None) -> None:
        self._tree = tree
        self._leaves = leaves

    def about(self, column: int, keys: Intervals) -> int:
        """An estimate of the rows; exact for a few intervals."""
        if self._leaves is not None and len(keys) <= _FEW_INTERVALS:
            return self._exact(self._leaves, column, keys)
        if not keys:
            return 0
        sample = keys[:: -(-len(keys) // _SAMPLE_INTERVALS)]
        counts = [high for _, high in self._around(column, sample, of_a_key=True)]
        return sum(counts) * len(keys) // len(sample)

    def bounds(self, column: int, keys: Intervals) -> tuple[int, int]:
        """Hard lower and upper bounds; equal for a few intervals if leaves are read."""
        if self._leaves is not None and len(keys) <= _FEW_INTERVALS:
            exact = self._exact(self._leaves, column, keys)
            return exact, exact
        around = self._around(column, keys)
        return sum(low for low, _ in around), sum(high for _, high in around)

    def _exact(self, leaves: LeafStore, column: int, keys: Intervals) -> int:
        ends = [end for each in keys for end in (each.low, each.high)]
        below = [
            _below(leaves, place, end)
            for place, end in zip(self._places(column, ends), ends, strict=True)
        ]
        return sum(below[1::2]) - sum(below[::2])

    def _around(
        self, column: int, keys: Sequence[Interval], *, of_a_key: bool = False
    ) -> list[tuple[int, int]]:
        """Lower and upper bounds of the rows in each interval. With `of_a_key`, the second number
        for an interval of one key is not a bound, but the average rows per key of its leaf."""
        ends = [end for each in keys for end in (each.low, each.high)]
        places = self._places(column, ends)
        return [
            _span(first, last, of_a_key=of_a_key and each.is_point)
            for each, first, last in zip(keys, places[::2], places[1::2], strict=True)
        ]

    def _places(self, column: int, bounds: Sequence[bytes | None]) -> list[LeafPlace | None]:
        floor = self._tree.leaves(column).floor
        return [floor(_ABOVE_ALL if bound is None else bound) for bound in bounds]


def _below(leaves: LeafStore, place: LeafPlace | None, bound: bytes | None) -> int:
    """The rows with keys below the bound, which lies in this leaf or between it and the next."""
    if place is None:
        return 0
    if bound is None or (place.is_set and place.key < bound):
        return place.before + place.rows
    if place.is_set:
        return place.before
    return place.before + leaves.packed(place).rows_below(bound)


def _span(first: LeafPlace | None, last: LeafPlace | None, *, of_a_key: bool) -> tuple[int, int]:
    """Lower and upper bounds of the rows between a bound in the first leaf (None: before all
    leaves) and one in the last."""
    if last is None:
        return 0, 0
    end = last.before + last.rows
    if first is None:
        return 0, end
    if of_a_key:
        return 0, -(-first.rows // first.keys)
    return max(0, last.before - first.before - first.rows), end - first.before
