"""Finds the rows of a predicate by look-ups in the entries of a slice. A look-up is left out if it
takes longer than reading the rows that it may rule out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import assert_never

from pyroaring import BitMap

from hudi_index_service.errors import EntryUnusable
from hudi_index_service.optimizer.cost.constants import CHECKED_SINGLY, DEFAULTS, LARGE_FILE
from hudi_index_service.optimizer.cost.pages import pages_of
from hudi_index_service.optimizer.grouping import grouped
from hudi_index_service.predicate.expression import (
    And,
    Constant,
    Leaf,
    Not,
    Or,
    Predicate,
    Together,
)
from hudi_index_service.predicate.fold import Condition, fold
from hudi_index_service.read.row_ids import Bounds, any_of
from hudi_index_service.read.slices.early_lookups import Found
from hudi_index_service.read.slices.slice_entries import SliceEntries


@dataclass(slots=True)
class EntryLookups:
    """Look-ups in the entries of a slice, and in the base file's column index for leaves that no
    entry answers.

    Attributes:
        superset_ok: Whether the rows found are read and checked anyway. If not, no look-up is left
            out.
        row_steps: The cost of reading one more page, in steps of a look-up: row ids or terms.
        known: What `EarlyLookups` found.
    """

    entries: SliceEntries
    superset_ok: bool
    row_steps: int = DEFAULTS.row_steps
    known: Found = field(default_factory=dict)
    _results: dict[Predicate, Bounds] = field(default_factory=dict)

    def rows(self, predicate: Predicate) -> Bounds:
        """The rows of a predicate in negation normal form.

        The conjuncts of an AND are looked up in order of cost, until no row is left.

        Raises:
            FileNotFoundError: the base file is gone.
            EntryUnusable: see `SliceEntries.rows`.
        """
        entries = self.entries.plan.entries
        return self._rows(grouped(predicate, entries, exact=not self.superset_ok), None)

    def _rows(self, predicate: Predicate, most: int | None) -> Bounds:
        """The rows of a grouped predicate, by look-ups of at most so many steps each."""
        match predicate:
            case Constant(value):
                return Bounds.exactly(BitMap(range(self.entries.total)) if value else BitMap())
            case Together() | Not() | Leaf():
                return self._looked_up(predicate, most)
            case And(operands):
                return self._all_of(operands, most)
            case Or(operands):
                return any_of(self._rows(each, most) for each in operands)
            case _:
                assert_never(predicate)

    def _all_of(self, operands: tuple[Predicate, ...], most: int | None) -> Bounds:
        bounds = Bounds(BitMap(range(self.entries.total)), None)
        for operand in self._cheapest_first(operands):
            left = bounds.possible
            if left is not None and self.superset_ok and len(left) <= CHECKED_SINGLY:
                remaining = self._narrowed(operand, left)
                if remaining.possible is not None:
                    bounds = bounds.within(remaining.possible)
                    most = self._worth(remaining.possible)
                if not bounds.possible:
                    break
                if remaining.exact_rows is not None:
                    continue
            bounds &= self._rows(operand, most)
            if bounds.possible is not None:
                if not bounds.possible:
                    break
                if self.superset_ok:
                    worth = self._worth(bounds.possible)
                    most = worth if most is None else min(most, worth)
        return bounds

    def _cheapest_first(self, operands: tuple[Predicate, ...]) -> Sequence[Predicate]:
        if len(operands) == 1 or self.entries.total < LARGE_FILE:
            return operands
        return sorted(operands, key=self._steps)

    def _steps(self, predicate: Predicate) -> int:
        fewest = partial(min, default=0)
        steps: int = fold(predicate, self._leaf_steps, fewest, sum, together=True)
        return steps

    def _leaf_steps(self, leaf: Condition) -> int:
        known = self._known(leaf)
        if known is None or known.possible is None:
            return self.entries.estimate(leaf)
        return len(known.possible)

    def _worth(self, rows: BitMap) -> int:
        """The cost of reading rows in look-up steps, which is what ruling them out is worth. Rows
        of one page are read together."""
        return self.row_steps * pages_of(rows)

    def _narrowed(self, predicate: Predicate, rows: BitMap) -> Bounds:
        """See `SliceEntries.narrowed`; unanswered if that fails, which `_looked_up` reports."""
        known = self._known(predicate)
        if known is not None and known.possible is not None:
            return known.within(rows)
        if isinstance(predicate, And | Or | Constant):
            return Bounds.unanswered()
        try:
            return self.entries.narrowed(predicate, rows)
        except EntryUnusable:
            return Bounds.unanswered()

    def _looked_up(self, leaf: Condition, most: int | None) -> Bounds:
        known = self._known(leaf)
        if known is not None:
            return known
        try:
            found = self.entries.rows(leaf, most, superset_ok=self.superset_ok)
        except EntryUnusable:
            if not isinstance(leaf, Together):
                raise
            # An entry of another index type may answer each of them.
            return self._all_of(leaf.operands, most)
        if found.possible is not None:
            self._results[leaf] = found
            return found
        return found if isinstance(leaf, Together) else self.entries.pages(leaf)

    def _known(self, predicate: Predicate) -> Bounds | None:
        """The rows of a leaf, if they have been looked up."""
        return self._results.get(predicate) or self.known.get(predicate)
