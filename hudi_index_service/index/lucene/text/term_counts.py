"""Counts the rows of each keyword of a column, from the terms and their postings alone."""

from collections.abc import Callable
from typing import Any

from pyroaring import BitMap

from hudi_index_service.index.contract import StoredColumn
from hudi_index_service.index.lucene.fields import KEYWORD, keyword_field
from hudi_index_service.index.lucene.search import Terms
from hudi_index_service.predicate.comparison import is_string


def holds_whole_values(stored: StoredColumn) -> bool:
    """Whether the column's terms are its values: text, with no value truncated."""
    return is_string(stored.type) and KEYWORD in stored.fields and stored.truncated == 0


def term_counts(
    reader: Any, column: str, rows_of: Callable[[Terms], BitMap], among: BitMap | None, most: int
) -> dict[str, int] | None:
    """The number of rows with each value of a column that `holds_whole_values`.

    Args:
        reader: Lucene's IndexReader.
        rows_of: A function that finds the rows of a term.
        among: The rows to count; None for all.
        most: The maximum number of values; None is returned if there are more.
    """
    from org.apache.lucene.index import MultiTerms
    from org.apache.lucene.util import BytesRefIterator

    field = keyword_field(column)
    terms = MultiTerms.getTerms(reader, field)
    if terms is None:  # every value is NULL
        return {}
    each = terms.iterator()
    values = BytesRefIterator.cast_(each)
    found: dict[str, int] = {}
    seen = 0
    while (term := values.next()) is not None:
        seen += 1
        if seen > most:
            return None
        value = str(term.utf8ToString())
        if among is None:
            found[value] = int(each.docFreq())
        elif here := rows_of(Terms(field, (value.encode(),))).intersection_cardinality(among):
            found[value] = here
    return found
