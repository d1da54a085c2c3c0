"""The optimizer's estimates for reading a file slice or a whole table.

Both are tuples, since a query makes some for each file slice, and making a frozen data class takes
three times as long.
"""

from typing import NamedTuple


class RowEstimate(NamedTuple):
    """An estimate of the rows that make a predicate TRUE.

    Attributes:
        least: The guaranteed minimum.
        expected: The best guess, within the bounds.
        most: The guaranteed maximum.
    """

    least: int
    expected: float
    most: int


class Expected(NamedTuple):
    """The expected cost of reading a file slice, estimated before it is read.

    Attributes:
        rows: The matching rows.
        pages: The number of data pages that hold these rows, of all columns read.
        bytes: The compressed bytes of these pages.
        index_bytes: Bytes of the index to be fetched first.
        index_ms: Milliseconds of reading through the index.
        scan_bytes: Compressed bytes of the base file that a scan reads.
        scan_ms: Milliseconds of a scan.
        guessed: The expected rows before their correction by the query history; None if they were
            not corrected.
    """

    rows: RowEstimate
    pages: float
    bytes: float
    index_bytes: int
    index_ms: float
    scan_bytes: int
    scan_ms: float
    guessed: float | None = None

    @property
    def guess(self) -> float:
        """The expected rows without the query history."""
        return self.rows.expected if self.guessed is None else self.guessed
