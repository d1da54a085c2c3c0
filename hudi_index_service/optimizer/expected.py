"""The optimizer's estimates: of the rows that match, combined from those of a predicate's leaves;
and of reading a file slice. Both are tuples, since a query makes some for each file slice, and
making a frozen data class takes three times as long.

The predicate is in negation normal form, so only TRUE has to be counted: a row makes AND true iff
it makes every operand true, and OR iff any.

The bounds hold for any correlation of the operands (M. Fréchet, *Généralisation du théorème des
probabilités totales*, Fundamenta Mathematicae 25, 1935). The guess assumes independence, with
exponential back-off for AND, since real columns are correlated: the most selective conjunct counts
fully, the second by the square root of its selectivity, the third by the fourth root, the fourth by
the eighth, and others not at all (J. Sack, *Optimizing Your Query Plans with the SQL Server 2014
Cardinality Estimator*, Microsoft, 2014). Arms of an OR are mostly alternatives, which overlap less
than independent ones, so they are not backed off.
"""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

_BACKED_OFF = 4  # conjuncts that count


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


def between(least: int, expected: float, most: int) -> RowEstimate:
    """The estimate with the guess clamped to the bounds."""
    if expected > most:
        expected = most
    elif expected < least:
        expected = least
    return RowEstimate(least, expected, most)


def all_of(operands: Sequence[RowEstimate], total: int) -> RowEstimate:
    """The rows in the intersection of sets of the `total` rows; all rows without sets."""
    if len(operands) == 1:
        return operands[0]
    least, most = total, total
    shares: list[float] = []
    for each in operands:
        least += each.least - total
        if each.most < most:
            most = each.most
        shares.append(each.expected)
    if most <= 0:
        return RowEstimate(0, 0, 0)
    shares.sort()
    expected = float(total)
    for share in reversed(shares[:_BACKED_OFF]):  # the least selective one gets the most roots
        expected = share / total * sqrt(expected / total) * total
    return between(max(least, 0), expected, most)


def any_of(operands: Sequence[RowEstimate], total: int) -> RowEstimate:
    """The rows in the union of sets of the `total` rows; none without sets."""
    if len(operands) == 1:
        return operands[0]
    least, most, without = 0, 0, 1.0
    for each in operands:
        if each.least > least:
            least = each.least
        most += each.most
        without *= 1 - each.expected / total if total else 1
    return between(least, (1 - without) * total, min(most, total))


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
