"""Computes bounds of the number of rows that a look-up finds, without finding them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hudi_index_service.index.column_kinds import is_array
from hudi_index_service.index.contract import Answer, StoredColumn
from hudi_index_service.index.lucene.lookup import LuceneLookup, null_elements_of
from hudi_index_service.index.lucene.queries import to_query
from hudi_index_service.index.lucene.search import Search

_MOST_TERMS = 1_024  # terms whose row counts are read: some tenths of a millisecond
_LOW_HALF = 2**32 - 1


@dataclass(frozen=True, slots=True)
class BoundedIndex:
    """An open index.

    Attributes:
        searcher: Lucene's IndexSearcher.
        rows: The number of rows.
        whole: Whether all bytes of the index are local. Then the leaves at the ends of a range are
            read too, for exact numbers.
    """

    searcher: Any
    rows: int
    whole: bool

    def bounds(self, search: Search) -> tuple[int, int]:
        """Lower and upper bounds of the number of rows that the search finds."""
        from hudiindex import RowBounds

        query = to_query(search)
        both = int(RowBounds.of(self.searcher, query, _MOST_TERMS, self.whole))
        return both >> 32, both & _LOW_HALF


def row_bounds(
    lookup: LuceneLookup, columns: Mapping[str, StoredColumn], index: BoundedIndex
) -> tuple[int, int]:
    """Lower and upper bounds of the number of rows for which the look-up's leaf is TRUE. The JVM
    must be attached."""
    least, most = index.bounds(lookup.search)
    total = index.rows
    if lookup.answer is not Answer.EXACT:
        return 0, most
    if not lookup.complement:
        return least, most
    if not lookup.without_null:
        return total - most, total - least
    column = columns[lookup.column]
    values = total - column.null_count
    if not is_array(column.type):
        return values - most, values - least
    # An array with the element may also have a NULL element.
    least_null, most_null = index.bounds(null_elements_of(lookup.column))
    return max(0, values - most - most_null), values - max(least, least_null)
