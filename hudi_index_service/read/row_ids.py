"""Row ids of a whole predicate, from the row ids of its leaves.

The predicate is in negation normal form, so only TRUE has to be tracked: a row makes AND true iff
it makes every operand true, and OR iff any. What no index answers narrows nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pyroaring import BitMap

from hudi_index_service.index.contract import Together
from hudi_index_service.optimizer.cost.pages import pages_of
from hudi_index_service.optimizer.rules.most_selective_first import LARGE_FILE
from hudi_index_service.predicate.expression import (
    And,
    Compare,
    Constant,
    In,
    Like,
    Operator,
    Or,
    Predicate,
    RLike,
)

_FEW = 1_024  # rows, each of which is looked at on its own


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


class Lookups(Protocol):
    """Answers leaves, and several conjuncts on one column at once."""

    @property
    def total(self) -> int:
        """Rows of the base file."""

    @property
    def thrifty(self) -> bool:
        """Whether the rows found are read and checked anyway: then nothing is looked up that takes
        longer than reading the rows that it may rule out."""

    @property
    def row_steps(self) -> int:
        """What reading one page more takes, in steps of a look-up."""

    def answers(self, conjuncts: And) -> bool:
        """Whether one look-up answers them all."""

    def estimate(self, asked: Predicate) -> int:
        """About how many steps a look-up takes: row ids and terms that it goes through."""

    def rows(self, asked: Predicate, most: int | None) -> RowSet:
        """The candidates; everything where nobody answers, or it would take more than `most`
        steps."""

    def narrowed(self, asked: Predicate, rows: BitMap) -> RowSet:
        """Those of a few candidates that a look at each of them leaves; everything where there is
        no way to look."""


LeafRows = Callable[[Predicate], RowSet]


@dataclass(frozen=True, slots=True)
class EachLeaf:
    """Asks for each leaf, in the order in which they are written."""

    leaf_rows: LeafRows
    total: int
    thrifty: bool = False
    row_steps: int = 1

    def answers(self, conjuncts: And) -> bool:
        """Never."""
        return False

    def estimate(self, asked: Predicate) -> int:
        """The same for all, so that their order stays."""
        return 0

    def rows(self, asked: Predicate, most: int | None) -> RowSet:
        """What is said of the leaf."""
        return self.leaf_rows(asked)

    def narrowed(self, asked: Predicate, rows: BitMap) -> RowSet:
        """There is no way to look."""
        return RowSet.everything()


def matching_rows(predicate: Predicate, leaf_rows: LeafRows, total: int) -> RowSet:
    """The candidates for a predicate in negation normal form.

    Args:
        leaf_rows: The candidates of a leaf, or everything.
        total: Rows of the base file.
    """
    return candidate_rows(predicate, EachLeaf(leaf_rows, total))


def candidate_rows(predicate: Predicate, lookups: Lookups, most: int | None = None) -> RowSet:
    """The candidates for a predicate in negation normal form.

    Of an AND the cheapest conjuncts are asked first, those on one column together where one look-up
    answers them, and none once no row is left.

    Args:
        most: Steps that a look-up may take; None for any number.
    """
    match predicate:
        case Constant(value):
            return RowSet(BitMap(range(lookups.total)) if value else BitMap(), True)
        case _OneColumn() | Together():
            return lookups.rows(predicate, most)
        case And(operands):
            return _all_of(operands, lookups, most)
        case Or(operands):
            return _any_of(operands, lookups, most)
        case leaf:
            return lookups.rows(leaf, most)


def is_exact(predicate: Predicate, answers_exactly: Callable[[Predicate], bool]) -> bool:
    """Whether look-ups tell of every row whether it makes the predicate TRUE."""
    match predicate:
        case Constant():
            return True
        case And(operands) | Or(operands):
            return all(is_exact(operand, answers_exactly) for operand in operands)
    return answers_exactly(predicate)


class _OneColumn(And):
    """Conjuncts that one look-up answers."""

    __slots__ = ()


def _all_of(operands: tuple[Predicate, ...], lookups: Lookups, most: int | None) -> RowSet:
    rows: BitMap | None = None
    exact = True
    for operand in _cheapest_first(_grouped(operands, lookups), lookups):
        if rows is not None and lookups.thrifty and len(rows) <= _FEW:
            left = lookups.narrowed(operand, rows)
            if left.rows is not None:
                rows, most = left.rows, _worth(left.rows, lookups)
            if not rows:
                return RowSet(BitMap(), True)
            if left.exact:
                continue
        found = candidate_rows(operand, lookups, most)
        exact = exact and found.exact
        if found.rows is not None:
            rows = found.rows if rows is None else rows & found.rows
            if not rows:
                return RowSet(BitMap(), True)
            if lookups.thrifty:
                worth = _worth(rows, lookups)
                most = worth if most is None else min(most, worth)
    return RowSet(rows, exact)


def _worth(rows: BitMap, lookups: Lookups) -> int:
    """The steps that reading rows takes, and so what ruling them out is worth. Those that lie in
    one page are read at once."""
    return lookups.row_steps * pages_of(rows)


def _any_of(operands: tuple[Predicate, ...], lookups: Lookups, most: int | None) -> RowSet:
    rows = BitMap()
    exact = True
    for operand in operands:
        found = candidate_rows(operand, lookups, most)
        if found.rows is None:
            return RowSet.everything()
        rows |= found.rows
        exact = exact and found.exact
    return RowSet(rows, exact)


def _grouped(operands: tuple[Predicate, ...], lookups: Lookups) -> list[Predicate]:
    """The conjuncts, those together that are looked up together. All are where the rows have to be
    known in the end; who reads and checks them anyway asks one by one, and stops when it pays."""
    groups = joined(operands, lookups)
    if lookups.thrifty or len(groups) < 2:
        return groups
    together = Together(tuple(groups))
    return [together] if lookups.answers(together) else groups


def joined(operands: tuple[Predicate, ...], lookups: Lookups) -> list[Predicate]:
    """The conjuncts of an AND, those on one column together as far as one look-up answers them."""
    groups: list[tuple[Predicate, ...]] = []
    for operand in operands:
        column = _range_column(operand)
        for number, group in enumerate(groups):
            if column is None or _range_column(group[0]) != column:
                continue
            if lookups.answers(And((*group, operand))):
                groups[number] = (*group, operand)
                break
        else:
            groups.append((operand,))
    return [_OneColumn(group) if len(group) > 1 else group[0] for group in groups]


def _range_column(leaf: Predicate) -> str | None:
    """The column of a leaf that is TRUE for some values of it."""
    match leaf:
        case Compare(column, operator) if operator is not Operator.NE:
            return column.name
        case In(column) | Like(column) | RLike(column):
            return column.name
    return None


def _cheapest_first(operands: list[Predicate], lookups: Lookups) -> list[Predicate]:
    if len(operands) == 1 or lookups.total < LARGE_FILE:
        return operands
    return sorted(operands, key=lambda operand: _steps(operand, lookups))


def _steps(predicate: Predicate, lookups: Lookups) -> int:
    match predicate:
        case Constant():
            return 0
        case _OneColumn() | Together():
            return lookups.estimate(predicate)
        case And(operands):
            return min(_steps(operand, lookups) for operand in operands)
        case Or(operands):
            return sum(_steps(operand, lookups) for operand in operands)
    return lookups.estimate(predicate)
