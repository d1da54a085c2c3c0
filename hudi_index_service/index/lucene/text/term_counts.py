"""Counts the rows of each keyword of a column, from the terms and their postings alone."""

from collections.abc import Callable
from typing import Any

from pyroaring import BitMap

from hudi_index_service.index.contract import StoredColumn
from hudi_index_service.index.lucene.fields import KEYWORD, keyword_field
from hudi_index_service.index.lucene.search import Terms
from hudi_index_service.predicate.comparison import is_string


def holds_whole_values(column: StoredColumn) -> bool:
    """Whether the column's terms are its values: text, with no value truncated."""
    return is_string(column.type) and KEYWORD in column.fields and column.truncated == 0


def term_counts(
    reader: Any, column: str, rows_of: Callable[[Terms], BitMap], among: BitMap | None, most: int
) -> dict[str, int] | None:
    """The number of rows with each value of a column that `holds_whole_values`.

    Args:
        reader: Lucene's IndexReader.
        rows_of: A function that finds the rows of a term.
        among: The rows to count; None for all.
        most: The maximum number of values; None is returned if there are more, or if a value is
            not UTF-8.
    """
    from org.apache.lucene.index import MultiTerms
    from org.apache.lucene.util import BytesRefIterator

    field = keyword_field(column)
    terms = MultiTerms.getTerms(reader, field)
    if terms is None:  # every value is NULL
        return {}
    terms_enum = terms.iterator()
    values = BytesRefIterator.cast_(terms_enum)
    counts: dict[str, int] = {}
    values_read = 0
    while (term := values.next()) is not None:
        values_read += 1
        if values_read > most:
            return None
        # Java would make other characters of bytes that are not UTF-8.
        text = bytes.fromhex(str(term.toString())[1:-1])
        try:
            value = text.decode()
        except UnicodeDecodeError:
            return None
        if among is None:
            counts[value] = int(terms_enum.docFreq())
        elif count := rows_of(Terms(field, (text,))).intersection_cardinality(among):
            counts[value] = count
    return counts
