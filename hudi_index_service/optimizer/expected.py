"""What the optimizer expects of reading a file slice, or a whole table, for a query.

Both are tuples, since a query makes some for each file slice: a frozen data class takes three times
as long to make.
"""

from typing import NamedTuple


class RowEstimate(NamedTuple):
    """How many rows make a predicate TRUE.

    Attributes:
        least: Never fewer.
        expected: The best guess, within the bounds.
        most: Never more.
    """

    least: int
    expected: float
    most: int


class Expected(NamedTuple):
    """What reading a file slice costs, by what is known before it is read.

    Attributes:
        rows: Rows that match.
        pages: Data pages that hold some of them, of all columns that are read.
        bytes: Bytes of the base file in these pages, compressed.
        index_bytes: Bytes of the index that have to be fetched first.
        index_ms: What reading through the index takes, in milliseconds.
        scan_bytes: Bytes of the base file that a scan reads, compressed.
        scan_ms: What a scan takes, in milliseconds.
        before_history: What was expected before the history of queries corrected it; None where it
            did not.
    """

    rows: RowEstimate
    pages: float
    bytes: float
    index_bytes: int
    index_ms: float
    scan_bytes: int
    scan_ms: float
    before_history: "Expected | None" = None
