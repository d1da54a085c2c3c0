"""Row ids of a whole predicate, from the row ids of its leaves.

The predicate is in negation normal form, so only TRUE has to be tracked: a row makes AND true iff
it makes every operand true, and OR iff any. What no index answers narrows nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pyroaring import BitMap

from hudi_index_service.predicate.expression import And, Constant, Or, Predicate


@dataclass(frozen=True, slots=True)
class RowSet:
    """The rows that may make a predicate TRUE.

    Attributes:
        rows: The candidates; None when nothing is known: every row.
        exact: Whether every candidate makes it TRUE, so that no residual is needed to count.
    """

    rows: BitMap | None
    exact: bool

    @property
    def settled(self) -> BitMap | None:
        """The rows that make the predicate TRUE, where that is known without reading any row."""
        known = self.rows is not None and (self.exact or not self.rows)
        return self.rows if known else None

    @classmethod
    def everything(cls) -> "RowSet":
        """All rows, none of them sure."""
        return cls(None, False)


LeafRows = Callable[[Predicate], RowSet]


def matching_rows(predicate: Predicate, leaf_rows: LeafRows, total: int) -> RowSet:
    """The candidates for a predicate in negation normal form.

    Args:
        leaf_rows: The candidates of a leaf, or everything.
        total: Rows of the base file.
    """
    match predicate:
        case Constant(value):
            return RowSet(BitMap(range(total)) if value else BitMap(), True)
        case And(operands):
            return _all_of(operands, leaf_rows, total)
        case Or(operands):
            return _any_of(operands, leaf_rows, total)
        case leaf:
            return leaf_rows(leaf)


def _all_of(operands: tuple[Predicate, ...], leaf_rows: LeafRows, total: int) -> RowSet:
    rows: BitMap | None = None
    exact = True
    for operand in operands:
        found = matching_rows(operand, leaf_rows, total)
        exact = exact and found.exact
        if found.rows is not None:
            rows = found.rows if rows is None else rows & found.rows
            if not rows:
                return RowSet(BitMap(), True)
    return RowSet(rows, exact)


def _any_of(operands: tuple[Predicate, ...], leaf_rows: LeafRows, total: int) -> RowSet:
    rows = BitMap()
    exact = True
    for operand in operands:
        found = matching_rows(operand, leaf_rows, total)
        if found.rows is None:
            return RowSet.everything()
        rows |= found.rows
        exact = exact and found.exact
    return RowSet(rows, exact)
