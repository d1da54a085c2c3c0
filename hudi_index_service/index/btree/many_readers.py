"""Searches the trees of many open entries by one call."""

from collections.abc import Sequence

import numpy as np
from hudi_index_parquet import Trees
from pyroaring import BitMap

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.btree.keys import Points
from hudi_index_service.index.btree.lookup import TreeLookup, known_lookup
from hudi_index_service.index.btree.reader import BTreeReader
from hudi_index_service.index.contract import IndexReader, ManyReaders, Positions, Truths
from hudi_index_service.index.routed import Numbers, Routed
from hudi_index_service.index.row_sets import row_sets
from hudi_index_service.predicate.expression import In, Predicate

_SHORT_LIST = 64
_MOST_ROWS = 1_024  # that are looked for to find out whether there are any


class BTreeReaders(ManyReaders):
    """Many open entries with all bytes on the local disk. Only single keys are looked up together.

    Args:
        readers: At least one. Those that fetch blocks are asked one by one.
    """

    def __init__(self, readers: Sequence[IndexReader]) -> None:
        of_btree = [each for each in readers if isinstance(each, BTreeReader)]
        self._columns = of_btree[0].columns
        self._is_local = np.array([each.is_local for each in of_btree], dtype=bool)
        self._numbers = np.cumsum(self._is_local, dtype=np.int32) - np.int32(1)  # in `_trees`
        self._readers = [each for each in of_btree if each.is_local]
        self._trees: dict[str, Trees] = {}

    def few_rows(
        self, leaf: Predicate, among: Positions, most: int
    ) -> Sequence[BitMap | None] | None:
        """See `ManyReaders`."""
        lookup = known_lookup(leaf, self._columns)
        if lookup is None or lookup.complement:
            return None
        points = lookup.search
        if not isinstance(points, Points) or len(points) > _SHORT_LIST:
            return None
        count = np.count_nonzero(self._is_local[among])
        starts = np.arange(count + 1, dtype=np.int32) * np.int32(len(points))
        numbers = np.tile(np.arange(len(points), dtype=np.int32), count)
        return self._found(lookup, points, among, starts, numbers, most)

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
        lookup = known_lookup(leaf, self._columns)
        if lookup is None or lookup.listed is None or not isinstance(lookup.search, Points):
            return None
        is_local = self._is_local[among]
        starts, numbers = values.of_files(np.flatnonzero(is_local)).sorted_by(lookup.listed.places)
        return self._found(lookup, lookup.search, among, starts, numbers, most)

    def _found(
        self,
        lookup: TreeLookup,
        points: Points,
        among: Positions,
        starts: Numbers,
        numbers: Numbers,
        most: int,
    ) -> list[BitMap | None]:
        is_local = self._is_local[among]
        positions = self._numbers[among[is_local]]
        try:
            counts, rows = self._trees_of(lookup.column).rows_of_keys(
                points.joined, points.offsets.data, positions.data, starts.data, numbers.data, most
            )
        except OSError as error:
            raise EntryInvalid(f"Leaves cannot be read: {error.strerror}.") from error
        return row_sets(is_local.tolist(), np.frombuffer(counts, dtype=np.int32).tolist(), rows)

    def _trees_of(self, column: str) -> Trees:
        trees = self._trees.get(column)
        if trees is None:
            trees = Trees([each.leaves_of(column) for each in self._readers])
            self._trees[column] = trees
        return trees
