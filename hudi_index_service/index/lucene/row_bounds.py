"""How many rows a look-up finds, at least and at most, without finding them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hudi_index_service.index.column_kinds import is_array
from hudi_index_service.index.contract import Answer, StoredColumn
from hudi_index_service.index.lucene.lookup import Lookup, null_elements_of
from hudi_index_service.index.lucene.queries import to_query
from hudi_index_service.index.lucene.search import Search

_MOST_TERMS = 1_024  # whose numbers of rows are looked at: some tenth of a millisecond
_LOW_HALF = 2**32 - 1


@dataclass(frozen=True, slots=True)
class BoundedIndex:
    """An open index.

    Attributes:
        searcher: Lucene's.
        rows: How many it has.
        whole: Whether all its bytes are here: then the leaves at the ends of a range are read, too,
            for exact numbers.
    """

    searcher: Any
    rows: int
    whole: bool

    def bounds(self, search: Search) -> tuple[int, int]:
        """At least and at most so many rows are found."""
        from hudiindex import RowBounds

        query = to_query(search)
        both = int(RowBounds.of(self.searcher, query, _MOST_TERMS, self.whole))
        return both >> 32, both & _LOW_HALF


def row_bounds(
    found: Lookup, columns: Mapping[str, StoredColumn], index: BoundedIndex
) -> tuple[int, int]:
    """Bounds of the rows that a look-up says are TRUE, where it answers exactly, or has among its
    candidates. The JVM must be attached."""
    least, most = index.bounds(found.search)
    total = index.rows
    if found.answer is not Answer.EXACT:
        return 0, most
    if not found.complement:
        return least, most
    if not found.without_null:
        return total - most, total - least
    stored = columns[found.column]
    values = total - stored.statistics.null_count
    if not is_array(stored.type):
        return values - most, values - least
    # An array that has the element may have one that is NULL, too.
    least_null, most_null = index.bounds(null_elements_of(found.column))
    return max(0, values - most - most_null), values - max(least, least_null)
