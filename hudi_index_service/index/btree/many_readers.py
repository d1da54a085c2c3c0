"""Searches the trees of many open entries by one call."""

from collections.abc import Sequence

import numpy as np
from hudi_index_parquet import Trees
from pyroaring import BitMap

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.btree.keys import Points
from hudi_index_service.index.btree.lookup import TreeLookup
from hudi_index_service.index.btree.reader import BTreeReader
from hudi_index_service.index.contract import IndexReader, Positions, Truths
from hudi_index_service.index.lookup_readers import LookupReaders, row_sets
from hudi_index_service.index.routed import Numbers, Routed
from hudi_index_service.predicate.expression import In, Predicate

_SHORT_LIST = 64
_MOST_ROWS = 1_024  # that are looked for to find out whether there are any


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
