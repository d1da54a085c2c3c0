"""Computes the row ids of a predicate from the row ids of its leaves.

The predicate is in negation normal form, so only TRUE has to be tracked: a row makes AND true iff
it makes every operand true, and OR iff any. Leaves that no index answers narrow nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyroaring import BitMap

from hudi_index_service.index.contract import Conjunction
from hudi_index_service.optimizer.cost.constants import CHECKED_SINGLY, LARGE_FILE
from hudi_index_service.optimizer.cost.pages import pages_of
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


@dataclass(frozen=True, slots=True)
class RowSet:
    """The rows that may make a predicate TRUE.

    Attributes:
        rows: The candidates; None for every row, if nothing is known.
        exact: Whether every candidate makes it TRUE, so that counting needs no residual.
    """

    rows: BitMap | None
    exact: bool

    @property
    def exact_rows(self) -> BitMap | None:
        """The matching rows, if known without reading any row; else None."""
        known = self.rows is not None and (self.exact or not self.rows)
        return self.rows if known else None

    @classmethod
    def everything(cls) -> "RowSet":
        """All rows, as inexact candidates."""
        return cls(None, False)


class Lookups(Protocol):
    """Answers leaves, and several conjuncts on one column at once."""

    @property
    def total(self) -> int:
        """Rows of the base file."""

    @property
    def superset_ok(self) -> bool:
        """Whether the rows found are read and checked anyway. If so, look-ups that take longer than
        reading the rows that they may rule out are left out."""

    @property
    def keys(self) -> Sequence[tuple[str, ...]]:
        """The composite keys of the entries, see `IndexType.keys`."""

    @property
    def row_steps(self) -> int:
        """The cost of reading one more page, in steps of a look-up."""

    def answers(self, conjuncts: And) -> bool:
        """Whether one look-up answers all conjuncts."""

    def estimate(self, predicate: Predicate) -> int:
        """The approximate number of steps of a look-up: row ids and terms that it reads."""

    def rows(self, predicate: Predicate, most: int | None) -> RowSet:
        """The candidates; everything if no index answers, or the look-up would take more than
        `most` steps."""

    def narrowed(self, predicate: Predicate, rows: BitMap) -> RowSet:
        """The given candidates that remain after checking each; everything if single rows cannot be
        checked."""


LeafRows = Callable[[Predicate], RowSet]


@dataclass(frozen=True, slots=True)
class EachLeaf:
    """Looks up each leaf on its own, in written order."""

    leaf_rows: LeafRows
    total: int
    superset_ok: bool = False
    row_steps: int = 1
    keys: Sequence[tuple[str, ...]] = ()

    def answers(self, conjuncts: And) -> bool:
        """Never."""
        return False

    def estimate(self, predicate: Predicate) -> int:
        """The same for all leaves, so that their order is kept."""
        return 0

    def rows(self, predicate: Predicate, most: int | None) -> RowSet:
        """The candidates of the leaf."""
        return self.leaf_rows(predicate)

    def narrowed(self, predicate: Predicate, rows: BitMap) -> RowSet:
        """Everything: single rows cannot be checked."""
        return RowSet.everything()


def matching_rows(predicate: Predicate, leaf_rows: LeafRows, total: int) -> RowSet:
    """The candidates for a predicate in negation normal form.

    Args:
        leaf_rows: Returns the candidates of a leaf, or everything.
        total: The number of rows of the base file.
    """
    return candidate_rows(predicate, EachLeaf(leaf_rows, total))


def candidate_rows(predicate: Predicate, lookups: Lookups, most: int | None = None) -> RowSet:
    """The candidates for a predicate in negation normal form.

    The conjuncts of an AND are looked up in order of cost, those on one column together if one
    look-up answers them, until no row is left.

    Args:
        most: The maximum number of steps of a look-up; None for no limit.
    """
    match predicate:
        case Constant(value):
            return RowSet(BitMap(range(lookups.total)) if value else BitMap(), True)
        case _OneColumn() | Conjunction():
            return lookups.rows(predicate, most)
        case And(operands):
            return _all_of(operands, lookups, most)
        case Or(operands):
            return _any_of(operands, lookups, most)
        case leaf:
            return lookups.rows(leaf, most)


def is_exact(
    predicate: Predicate,
    answers_exactly: Callable[[Predicate], bool],
    keys: Sequence[tuple[str, ...]] = (),
) -> bool:
    """Whether look-ups alone determine exactly the matching rows.

    Args:
        answers_exactly: Whether one look-up answers a leaf, or some conjuncts, exactly.
        keys: The composite keys, see `IndexType.keys`.
    """
    match predicate:
        case Constant():
            return True
        case _OneColumn() | Conjunction():
            return answers_exactly(predicate)
        case And(operands):
            groups = joined(operands, answers_exactly, keys)
            return all(is_exact(each, answers_exactly, keys) for each in groups)
        case Or(operands):
            return all(is_exact(each, answers_exactly, keys) for each in operands)
    return answers_exactly(predicate)


class _OneColumn(And):
    """Conjuncts that one look-up answers."""

    __slots__ = ()


def _all_of(operands: tuple[Predicate, ...], lookups: Lookups, most: int | None) -> RowSet:
    rows: BitMap | None = None
    exact = True
    for operand in _cheapest_first(_grouped(operands, lookups), lookups):
        if rows is not None and lookups.superset_ok and len(rows) <= CHECKED_SINGLY:
            remaining = lookups.narrowed(operand, rows)
            if remaining.rows is not None:
                rows, most = remaining.rows, _worth(remaining.rows, lookups)
            if not rows:
                return RowSet(BitMap(), True)
            if remaining.exact:
                continue
        candidates = candidate_rows(operand, lookups, most)
        exact = exact and candidates.exact
        if candidates.rows is not None:
            rows = candidates.rows if rows is None else rows & candidates.rows
            if not rows:
                return RowSet(BitMap(), True)
            if lookups.superset_ok:
                worth = _worth(rows, lookups)
                most = worth if most is None else min(most, worth)
    return RowSet(rows, exact)


def _worth(rows: BitMap, lookups: Lookups) -> int:
    """The cost of reading rows in look-up steps, which is what ruling them out is worth. Rows of
    one page are read together."""
    return lookups.row_steps * pages_of(rows)


def _any_of(operands: tuple[Predicate, ...], lookups: Lookups, most: int | None) -> RowSet:
    rows = BitMap()
    exact = True
    for operand in operands:
        candidates = candidate_rows(operand, lookups, most)
        if candidates.rows is None:
            return RowSet.everything()
        rows |= candidates.rows
        exact = exact and candidates.exact
    return RowSet(rows, exact)


def _grouped(operands: tuple[Predicate, ...], lookups: Lookups) -> list[Predicate]:
    """The conjuncts, grouped by look-up. If exact rows are needed, all are looked up together where
    possible. If rows are read and checked anyway, groups stay apart, so that look-ups can stop
    early."""
    groups = joined(operands, lookups.answers, lookups.keys)
    if lookups.superset_ok or len(groups) < 2:
        return groups
    together = Conjunction(tuple(groups))
    return [together] if lookups.answers(together) else groups


def joined(
    operands: Sequence[Predicate],
    answers: Callable[[And], bool],
    keys: Sequence[tuple[str, ...]] = (),
) -> list[Predicate]:
    """The conjuncts of an AND, those on one column grouped if one look-up answers them, and those
    on the first columns of a composite key.

    Args:
        answers: Whether one look-up answers some conjuncts.
        keys: The composite keys, see `IndexType.keys`.
    """
    groups: list[tuple[Predicate, ...]] = []
    for operand in operands:
        column = _range_column(operand)
        for number, group in enumerate(groups):
            if column is None or _range_column(group[0]) != column:
                continue
            if answers(And((*group, operand))):
                groups[number] = (*group, operand)
                break
        else:
            groups.append((operand,))
    by_column = [_OneColumn(group) if len(group) > 1 else group[0] for group in groups]
    return _by_key(by_column, answers, keys)


def _by_key(
    groups: list[Predicate],
    answers: Callable[[And], bool],
    keys: Sequence[tuple[str, ...]],
) -> list[Predicate]:
    """The groups, those on the first columns of the longest key that fits made one."""
    best: tuple[Predicate, ...] = ()
    for key in keys:
        of_key: tuple[Predicate, ...] = ()
        for name in key:
            of_column = [each for each in groups if each.columns() == {name}]
            if not of_column or (of_key and not answers(Conjunction((*of_key, *of_column)))):
                break
            of_key = (*of_key, *of_column)
        best = max(best, of_key, key=len)
    if len(best) < 2:
        return groups
    return [Conjunction(best), *(each for each in groups if all(each is not one for one in best))]


def _range_column(leaf: Predicate) -> str | None:
    """The column of a leaf that selects some of its values; None for other leaves."""
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
        case _OneColumn() | Conjunction():
            return lookups.estimate(predicate)
        case And(operands):
            return min(_steps(operand, lookups) for operand in operands)
        case Or(operands):
            return sum(_steps(operand, lookups) for operand in operands)
    return lookups.estimate(predicate)
