"""Readers that answer by look-ups: what three-valued logic makes of the rows that a search finds,
and how many open entries are asked by one call."""

from abc import abstractmethod
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from pyroaring import BitMap

from hudi_index_service.index.contract import (
    Answer,
    IndexReader,
    ManyReaders,
    Positions,
    StoredColumn,
    Truths,
)
from hudi_index_service.index.leaf_lookup import LeafLookup, LeafLookups, ListedValues, Search
from hudi_index_service.index.routed import Numbers, Routed
from hudi_index_service.index.stored_column import is_array
from hudi_index_service.predicate.expression import In, Predicate


class LookupReader(IndexReader, Generic[Search]):
    """An open entry.

    Attributes:
        lookups: Those of the index type.
        rows: The number of rows.
        columns: The columns by name.
        is_local: Whether all bytes are in the local file.
    """

    def __init__(
        self,
        lookups: LeafLookups[Search],
        rows: int,
        columns: Sequence[StoredColumn],
        *,
        is_local: bool,
    ) -> None:
        self.rows = rows
        self.columns = {column.name: column for column in columns}
        self.is_local = is_local
        self.lookups = lookups
        self._nulls: dict[str, BitMap] = {}

    def estimate(self, leaf: Predicate) -> int:
        """The rows that are found, or left if those found are excluded."""
        lookup = self._lookup(leaf)
        found = self._estimate_found(lookup)
        return self.rows - found if lookup.complement else found

    def row_bounds(self, leaf: Predicate) -> tuple[int, int]:
        """Bounds of the rows for which the leaf is TRUE, from those of the rows that are found."""
        lookup = self._lookup(leaf)
        least, most = self._found_bounds(lookup)
        if lookup.complement:
            column, nulls = self.columns[lookup.column], 0
            if lookup.without_null:
                of_array = is_array(column.type)
                nulls = len(self._null_rows(column.name)) if of_array else column.null_count
            # An array may hold a matching element and a NULL.
            excluded = max(least, nulls) if is_array(column.type) else least + nulls
            least, most = self.rows - nulls - most, self.rows - excluded
        least = max(least, 0) if lookup.answer is Answer.EXACT else 0
        return least, min(max(most, 0), self.rows)

    @abstractmethod
    def _estimate_found(self, lookup: LeafLookup[Search]) -> int:
        """An estimate of the rows that a look-up finds, before any complement."""

    @abstractmethod
    def _found_bounds(self, lookup: LeafLookup[Search]) -> tuple[int, int]:
        """Lower and upper bounds of the rows that a look-up finds, before any complement."""

    @abstractmethod
    def _find_nulls(self, column: StoredColumn) -> BitMap:
        """The rows where a column is NULL, or is an array with a NULL element."""

    def _lookup(self, leaf: Predicate) -> LeafLookup[Search]:
        lookup = self.lookups(leaf, self.columns)
        if lookup is None:
            raise ValueError(f"This index does not answer {leaf}: check IndexType.answer first.")
        return lookup

    def _others(self, lookup: LeafLookup[Search], rows: BitMap, found: BitMap) -> BitMap:
        """The given rows that are in the look-up's complement."""
        remaining = rows - found
        return remaining - self._null_rows(lookup.column) if lookup.without_null else remaining

    def _null_rows(self, column: str) -> BitMap:
        rows = self._nulls.get(column)
        if rows is None:
            rows = self._nulls[column] = self._find_nulls(self.columns[column])
        return rows


Reader = TypeVar("Reader", bound=LookupReader[Any])


class LookupReaders(ManyReaders, Generic[Reader]):
    """Many open entries, of which those with all bytes in the local file are asked by one call.

    Args:
        kind: The class of the readers, of which there is at least one.
    """

    def __init__(self, kind: type[Reader], readers: Sequence[IndexReader]) -> None:
        self._readers = [each for each in readers if isinstance(each, kind)]
        self._is_local = np.array([each.is_local for each in self._readers], dtype=bool)
        self._numbers = np.cumsum(self._is_local, dtype=np.int32) - np.int32(1)

    def _lookup(self, leaf: Predicate) -> LeafLookup[Any] | None:
        first = self._readers[0]
        return first.lookups(leaf, first.columns)

    def _asked(self, among: Positions) -> tuple[Truths, Positions]:
        """Which of some entries are asked, and their numbers among all that can be."""
        is_local = self._is_local[among]
        return is_local, self._numbers[among[is_local]]

    def _listed(
        self, leaf: In, among: Positions, values: Routed
    ) -> tuple[LeafLookup[Any], ListedValues, Numbers, Numbers] | None:
        """The look-up of a list, its values, and those to look up in the entries that are asked, as
        `Routed.sorted_by` returns them; None if values are not looked up one by one."""
        lookup = self._lookup(leaf)
        if lookup is None or lookup.listed is None:
            return None
        asked = values.of_files(np.flatnonzero(self._is_local[among]))
        return lookup, lookup.listed, *asked.sorted_by(lookup.listed.places)


def row_sets(is_asked: Iterable[bool], counts: Iterable[int], rows: bytes) -> list[BitMap | None]:
    """The rows of each entry; None for one that was not asked, and for a negative count.

    Args:
        is_asked: For each entry, whether the call asked it.
        counts: The number of rows of each entry that was asked.
        rows: The row ids of all these, one after the other, as unsigned 32-bit integers.
    """
    sets: list[BitMap | None] = []
    left, end = iter(counts), 0
    for each in is_asked:
        count = next(left) if each else -1
        if count < 0:
            sets.append(None)
            continue
        start, end = end, end + 4 * count
        # The fastest way into a bitmap.
        sets.append(BitMap(array("I", rows[start:end])) if count else BitMap())
    return sets
