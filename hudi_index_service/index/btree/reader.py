"""Answers predicate leaves from a packed tree, and counts rows by reading at most the leaves at the
ends of an interval."""

from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from typing import TypeVar

import numpy as np
from hudi_index_parquet import TreeLeaves, Trees, rows_between, rows_of_keys
from pyroaring import BitMap

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.btree.fields import KEY, trees_of
from hudi_index_service.index.btree.keys import EVERY_KEY, Intervals, Points
from hudi_index_service.index.btree.leaf_file import Find, LeafFile, LeafStore
from hudi_index_service.index.btree.lookup import TreeLookup, known_lookup
from hudi_index_service.index.btree.tree import Branch, LeafPlace, Leaves, Tree
from hudi_index_service.index.contract import (
    Answer,
    IndexReader,
    PackedIndex,
    Positions,
    StoredColumn,
    Truths,
)
from hudi_index_service.index.intervals import Interval
from hudi_index_service.index.leaf_lookup import LookupReader, LookupReaders, row_sets
from hudi_index_service.index.routed import Numbers, Routed
from hudi_index_service.predicate.comparison import is_string
from hudi_index_service.predicate.expression import In, Predicate

_FEW_INTERVALS = 8  # intervals; with more, the leaves at their ends are not read
_SAMPLE_INTERVALS = 64
_ABOVE_ALL = b"\xff" * 512
_SHORT_LIST = 64
_MOST_ROWS = 1_024  # that are looked for to find out whether there are any
_FEW_STEPS = 4_096  # steps that are cheaper than reading and checking rows later


Rows = TypeVar("Rows", BitMap, np.ndarray)


class BTreeReader(LookupReader[Intervals | None]):
    """See `hudi_index_service.index.contract.IndexReader`.

    Args:
        leaves: The source of the leaves, if not the packed file; then counting reads no leaves.
    """

    def __init__(
        self,
        index: PackedIndex,
        columns: Sequence[StoredColumn],
        leaves: LeafStore | None = None,
    ) -> None:
        is_local = index.blocks is None and leaves is None
        super().__init__(known_lookup, index.rows, columns, is_local=is_local)
        self._reads_ends = leaves is None
        with ExitStack() as stack:
            self._leaves: LeafStore = LeafFile(index) if leaves is None else leaves
            stack.callback(self._leaves.close)
            self._tree = Tree.of(index)
            self._numbers = {name: n for n, name in enumerate(self._tree.description().columns)}
            missing = sorted({each.name for each in trees_of(columns)} - {*self._numbers})
            if missing:
                raise EntryInvalid(f"{index.path} lacks the column {missing[0]}.")
            stack.pop_all()

    def row_ids(self, leaf: Predicate) -> BitMap:
        """The rows where the leaf is TRUE, or a superset (see `IndexType.answer`)."""
        lookup = self._lookup(leaf)
        rows = self._rows_of(lookup)
        return self._others(lookup, BitMap(range(self.rows)), rows) if lookup.complement else rows

    def candidates(self, leaf: Predicate, most: int | None) -> BitMap | None:
        """The rows of `row_ids`; None if that takes too many steps."""
        if most is not None and self._estimate_found(self._lookup(leaf)) > most:
            return None
        return self.row_ids(leaf)

    def narrowed(self, leaf: Predicate, rows: BitMap) -> tuple[BitMap, Answer]:
        """Narrows the rows by looking them all up, if they are few."""
        lookup = known_lookup(leaf, self.columns)
        if lookup is None or self._estimate_found(lookup) > _FEW_STEPS:
            return rows, Answer.NONE
        hit = self._rows_of(lookup)
        return self._others(lookup, rows, hit) if lookup.complement else rows & hit, lookup.answer

    def value_counts(self, column: str, among: BitMap | None, most: int) -> dict[str, int] | None:
        """The number of rows per value of a text column, counting only `among` if given."""
        stored_column = self.columns[column]
        if not is_string(stored_column.type) or stored_column.truncated:
            return None
        if KEY not in stored_column.fields:
            return None
        places = list(self._tree.leaves(self._numbers[column]))
        if sum(place.keys for place in places) > most:
            return None
        self._leaves.expect(place for place in places if among is not None or not place.is_set)
        mask = np.zeros(self.rows, dtype=bool)
        if among is not None:
            mask[_ids(among)] = True
        counts: dict[str, int] = {}
        try:
            for place in places:
                if place.is_set:
                    total = place.rows if among is None else len(self._leaves.set(place) & among)
                    counts[place.key.decode()] = total
                    continue
                leaf = self._leaves.packed(place)
                numbers = np.diff(leaf.starts)
                if among is not None:
                    hits = mask[self._within(leaf.rows)].astype(np.int64)
                    numbers = np.add.reduceat(hits, leaf.starts[:-1])
                texts = map(bytes.decode, leaf.keys.to_pylist())
                counts |= zip(texts, numbers.tolist(), strict=True)
        except UnicodeDecodeError:
            return None
        return {value: count for value, count in counts.items() if count}

    def leaves_of(self, column: str) -> TreeLeaves:
        """The leaves of the tree of a column, or of a composite key, in the local file.

        Raises:
            EntryInvalid: the tree is damaged, or closed.
        """
        assert isinstance(self._leaves, LeafFile), "all bytes are in the local file"
        leaves = self._tree.leaves(self._numbers[column])
        handle, start = self._leaves.opened
        return TreeLeaves(handle, start, self.rows, leaves.records, leaves.first_keys)

    def close(self) -> None:
        """Closes the index."""
        self._leaves.close()

    def _rows_of(self, lookup: TreeLookup) -> BitMap:
        """The rows that the look-up finds, before any complement."""
        if lookup.search is None:
            return self._branch(lookup.column, Branch.NULLS)
        if isinstance(lookup.search, Points):
            return self._rows_of_points(lookup.column, lookup.search)
        return self._rows_of_keys(lookup.column, lookup.search)

    def _find_nulls(self, column: StoredColumn) -> BitMap:
        branches = Branch.NULLS, Branch.NULL_ELEMENTS
        return BitMap.union(*(self._branch(column.name, each) for each in branches))

    def _branch(self, column: str, branch: Branch) -> BitMap:
        if branch is Branch.NULLS and not self.columns[column].null_count:
            return BitMap()
        rows = BitMap()
        for place in self._tree.leaves(self._numbers[column], branch):
            rows |= self._leaves.set(place)
        return self._within(rows)

    def _rows_of_keys(self, tree: str, keys: Sequence[Interval]) -> BitMap:
        """The rows of the keys."""
        leaves = self._tree.leaves(self._numbers[tree])
        numbers_of: list[Sequence[int]] = [leaves.between(each.low, each.high) for each in keys]
        searches = list(_searches(leaves, keys, numbers_of))
        packed = list(dict.fromkeys(number for number, _ in searches))
        position = {number: at for at, number in enumerate(packed)}
        spans = [(position[number], each.low, each.high) for number, each in searches]
        sets = [
            number
            for interval, numbers in zip(keys, numbers_of, strict=True)
            for number in numbers
            if leaves.is_set(number) and interval.holds(leaves.first_keys[number])
        ]
        return self._found(leaves, packed, partial(rows_between, spans=spans), sets)

    def _rows_of_points(self, tree: str, points: Points) -> BitMap:
        """The rows of single keys."""
        leaves = self._tree.leaves(self._numbers[tree])
        packed, parts = leaves.of_keys(points.keys)
        sets: list[int] = []
        if leaves.have_sets:
            each = list(zip(packed, parts, strict=True))
            sets = [
                number
                for number, (start, _) in each
                if leaves.is_set(number) and points.keys[start] == leaves.first_keys[number]
            ]
            packed = [number for number, _ in each if not leaves.is_set(number)]
            parts = [part for number, part in each if not leaves.is_set(number)]
        find = partial(rows_of_keys, keys=points.joined, offsets=points.offsets, parts=parts)
        return self._found(leaves, packed, find, sets)

    def _found(self, leaves: Leaves, packed: list[int], find: Find, sets: list[int]) -> BitMap:
        """The rows that a search finds in packed leaves, and those of sets; both by the numbers of
        the leaves."""
        self._leaves.expect(map(leaves.place, chain(packed, sets)))
        rows = (
            BitMap.union(*(self._leaves.set(leaves.place(n)) for n in sets)) if sets else BitMap()
        )
        if packed:
            rows |= BitMap(array("I", self._leaves.rows(leaves, packed, find)))
        return self._within(rows)

    def _within(self, rows: Rows) -> Rows:
        if len(rows) and int(rows.max()) >= self.rows:
            raise EntryInvalid("A btree index names rows that the base file does not have.")
        return rows

    def _estimate_found(self, lookup: TreeLookup) -> int:
        return min(self._row_count_bounds(lookup, exactly=False)[1], self.rows)

    def _found_bounds(self, lookup: TreeLookup) -> tuple[int, int]:
        return self._row_count_bounds(lookup, exactly=True)

    def _row_count_bounds(self, lookup: TreeLookup, *, exactly: bool) -> tuple[int, int]:
        """Lower and upper bounds of the rows found before any complement, that is of the pairs of a
        key and a row, by the numbers in the tree's inner keys; estimates unless exact bounds are
        requested. Both are exact for a few intervals, if the leaves at their ends can be read."""
        keys = lookup.search
        if keys is None:
            nulls = self.columns[lookup.column].null_count
            return nulls, nulls
        leaves = self._tree.leaves(self._numbers[lookup.column])
        if self._reads_ends and len(keys) <= _FEW_INTERVALS:
            ends = _ends(keys)
            below = [
                _below(self._leaves, place, end)
                for place, end in zip(_floors(leaves, ends), ends, strict=True)
            ]
            count = sum(below[1::2]) - sum(below[::2])
        elif exactly and isinstance(keys, Points):
            return _bounds_of_points(leaves, keys)
        elif exactly:
            around = _around(leaves, keys)
            return sum(low for low, _ in around), sum(high for _, high in around)
        else:
            sample = keys[:: -(-len(keys) // _SAMPLE_INTERVALS) or 1]
            counts = [high for _, high in _around(leaves, sample, of_a_key=True)]
            count = sum(counts) * len(keys) // max(1, len(sample))
        return count, count


class BTreeReaders(LookupReaders[BTreeReader]):
    """Many open entries. Only single keys are looked up together."""

    def __init__(self, readers: Sequence[IndexReader]) -> None:
        super().__init__(BTreeReader, readers)
        self._trees: dict[str, Trees] = {}

    def few_rows(
        self, leaf: Predicate, among: Positions, most: int
    ) -> Sequence[BitMap | None] | None:
        """See `ManyReaders`."""
        lookup = self._lookup(leaf)
        if lookup is None or lookup.complement:
            return None
        points = lookup.search
        if not isinstance(points, Points) or len(points) > _SHORT_LIST:
            return None
        count = np.count_nonzero(self._is_local[among])
        starts = np.arange(count + 1, dtype=np.int32) * np.int32(len(points))
        numbers = np.tile(np.arange(len(points), dtype=np.int32), count)
        return self._found(lookup, among, starts, numbers, most)

    def without_rows(self, leaf: Predicate, among: Positions) -> Truths | None:
        """See `ManyReaders`."""
        rows = self.few_rows(leaf, among, _MOST_ROWS)
        if rows is None:
            return None
        return np.array([each is not None and not each for each in rows], dtype=bool)

    def rows_of_values(
        self, leaf: In, among: Positions, values: Routed, most: int
    ) -> Sequence[BitMap | None] | None:
        """See `ManyReaders`."""
        listed = self._listed(leaf, among, values)
        if listed is None:
            return None
        lookup, _, starts, numbers = listed
        return self._found(lookup, among, starts, numbers, most)

    def _found(
        self, lookup: TreeLookup, among: Positions, starts: Numbers, numbers: Numbers, most: int
    ) -> list[BitMap | None]:
        points = lookup.search
        assert isinstance(points, Points), "single keys"
        is_local, asked = self._asked(among)
        try:
            counts, rows = self._trees_of(lookup.column).rows_of_keys(
                points.joined, points.offsets.data, asked.data, starts.data, numbers.data, most
            )
        except OSError as error:
            raise EntryInvalid(f"Leaves cannot be read: {error.strerror}.") from error
        return row_sets(is_local.tolist(), np.frombuffer(counts, dtype=np.int32).tolist(), rows)

    def _trees_of(self, column: str) -> Trees:
        trees = self._trees.get(column)
        if trees is None:
            local = [each.leaves_of(column) for each in self._readers if each.is_local]
            trees = self._trees[column] = Trees(local)
        return trees


def _searches(
    leaves: Leaves, keys: Sequence[Interval], numbers_of: Sequence[Sequence[int]]
) -> Iterator[tuple[int, Interval]]:
    """The numbers of the packed leaves to search, each with an interval, in the order of the
    leaves. Leaves between the first and the last one of an interval have only keys of it."""
    for interval, numbers in zip(keys, numbers_of, strict=True):
        last = len(numbers) - 1
        for at, number in enumerate(numbers):
            if not leaves.is_set(number):
                yield number, interval if at in (0, last) else EVERY_KEY


def _ids(rows: BitMap) -> np.ndarray:
    return np.frombuffer(rows.to_array(), dtype=np.uint32)


def _bounds_of_points(leaves: Leaves, points: Points) -> tuple[int, int]:
    """Lower and upper bounds of the rows of single keys, each of which is in one leaf."""
    least = most = 0
    for number, (start, end) in zip(*leaves.of_keys(points.keys), strict=True):
        place = leaves.place(number)
        if not place.is_set:  # its other keys have a row each
            most += place.rows - max(0, place.keys - (end - start))
        elif points.keys[start] == place.key:
            least, most = least + place.rows, most + place.rows
    return least, most


def _around(leaves: Leaves, keys: Intervals, *, of_a_key: bool = False) -> list[tuple[int, int]]:
    """Lower and upper bounds of the rows in each interval. With `of_a_key`, the second number for
    an interval of one key is not a bound, but the average rows per key of its leaf."""
    places = _floors(leaves, _ends(keys))
    return [
        _span(first, last, of_a_key=of_a_key and each.is_point)
        for each, first, last in zip(keys, places[::2], places[1::2], strict=True)
    ]


def _ends(keys: Intervals) -> list[bytes | None]:
    return [end for each in keys for end in (each.low, each.high)]


def _floors(leaves: Leaves, bounds: Sequence[bytes | None]) -> list[LeafPlace | None]:
    return [leaves.floor(_ABOVE_ALL if bound is None else bound) for bound in bounds]


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
