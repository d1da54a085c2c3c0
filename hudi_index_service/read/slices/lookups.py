"""Looks up a predicate in slices: which rows of their base files may match, and which certainly do.

Of several slices, each leaf is looked up in all that still need it, by one call for many open
entries where there is one: a call takes longer than most look-ups. What no such call answers is
looked up slice by slice. A look-up that takes longer than reading the rows that it may rule out is
left out.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias, assert_never

import numpy as np
from hudi_index_parquet import Footer
from pyroaring import BitMap

from hudi_index_service.errors import EntryUnusable
from hudi_index_service.index.contract import Answer
from hudi_index_service.optimizer.cost.constants import (
    CHECKED_SINGLY,
    DEFAULTS,
    LARGE_FILE,
    MANY_SLICES,
    SHORT_LOOKUP,
)
from hudi_index_service.optimizer.cost.reading_steps import ReadingSteps
from hudi_index_service.optimizer.decide import (
    look_up_each_pays,
    look_up_together,
    most_steps,
    narrow_together,
)
from hudi_index_service.optimizer.estimates import estimated_rows
from hudi_index_service.optimizer.grouping import grouped
from hudi_index_service.optimizer.plan import Routes, SlicePlan
from hudi_index_service.optimizer.serving import ServingEntry, best_answer
from hudi_index_service.predicate.expression import (
    And,
    Constant,
    In,
    Leaf,
    Not,
    Or,
    Predicate,
    Together,
)
from hudi_index_service.predicate.fold import Condition
from hudi_index_service.read.parallel import mapped
from hudi_index_service.read.row_ids import Bounds
from hudi_index_service.read.slices.found_rows import FoundRows
from hudi_index_service.read.slices.many_entries import (
    RowsOfOpen,
    few_rows,
    listed_rows,
    narrowed_rows,
)
from hudi_index_service.read.slices.reader_pool import ReaderPool
from hudi_index_service.read.slices.slice_entries import SliceEntries

TAKES_LONGER = "to look up its rows takes longer than a scan"
"""Why a slice is scanned."""

_MOST_PAIRS = 2**22
"""Pairs of an entry and a value that are looked up together."""

_Left: TypeAlias = Sequence[BitMap | None]
"""The rows of each slice that other conditions leave; None for all. Answers for others are of no
use, and may be wrong."""


def usual_reading(each: FoundRows, footer: Footer) -> ReadingSteps:
    """Where nothing is known of the base file, and look-ups may take longer than a scan."""
    return ReadingSteps.unknown(DEFAULTS)


@dataclass(frozen=True, slots=True)
class Lookups:
    """Looks up slices for one query.

    Attributes:
        pool: Opens their entries.
        superset_ok: Whether the rows found are read and checked anyway. If not, no look-up is left
            out.
        counts: Whether the number of rows is enough, where one look-up knows it.
        routes: Tells which values of a list base files may hold; None if unknown.
        reading: What reading costs of a slice whose base file has this footer.
        parallelism: The most threads that look up slices one by one.
    """

    pool: ReaderPool
    superset_ok: bool
    counts: bool = False
    routes: Routes | None = None
    reading: Callable[[FoundRows, Footer], ReadingSteps] = usual_reading
    parallelism: int = 1

    def look_up(self, slices: Sequence[FoundRows]) -> None:
        """Finds the rows of each slice.

        The conjuncts of an AND are looked up in order of cost, until no row is left.

        Raises:
            FileNotFoundError: a base file is gone.
        """
        for alike in _alike(slices):
            tree = grouped(alike[0].predicate, alike[0].plan.entries, exact=not self.superset_ok)
            none_left: _Left = [None] * len(alike)
            if self.counts and isinstance(tree, Together | Not | Leaf):
                found = self._looked_up(tree, alike, none_left, counted=True)
            else:
                found = self._rows(tree, alike, none_left)
            for each, bounds in zip(alike, found, strict=True):
                each.bounds = bounds

    def _rows(self, node: Predicate, slices: Sequence[FoundRows], left: _Left) -> list[Bounds]:
        """The rows of a grouped predicate in each slice."""
        if not slices:
            return []
        match node:
            case Constant(value):
                return [Bounds.exactly(_every_row(each) if value else BitMap()) for each in slices]
            case Together() | Not() | Leaf():
                return self._looked_up(node, slices, left)
            case And(operands):
                return self._all_of(operands, slices, left)
            case Or(operands):
                return self._any_of(operands, slices, left)
            case _:
                assert_never(node)

    def _all_of(
        self, operands: Sequence[Predicate], slices: Sequence[FoundRows], left: _Left
    ) -> list[Bounds]:
        bounds = [Bounds(_every_row(each), None) for each in slices]
        among, rows = list(range(len(slices))), list(left)
        for operand in self._cheapest_first(operands, slices):
            found = self._rows(operand, [slices[n] for n in among], [rows[n] for n in among])
            for n, each in zip(among, found, strict=True):
                bounds[n] &= each
                possible = bounds[n].possible
                if possible is not None:
                    before = rows[n]
                    rows[n] = possible if before is None else possible & before
            among = [n for n in among if not slices[n].failure and rows[n] != BitMap()]
        return bounds

    def _any_of(
        self, operands: Sequence[Predicate], slices: Sequence[FoundRows], left: _Left
    ) -> list[Bounds]:
        bounds, among = [Bounds.exactly(BitMap())] * len(slices), list(range(len(slices)))
        for operand in operands:
            found = self._rows(operand, [slices[n] for n in among], [left[n] for n in among])
            for n, each in zip(among, found, strict=True):
                bounds[n] |= each
            # After an arm that narrows nothing, others are of no use.
            among = [n for n in among if bounds[n].possible is not None]
        return bounds

    def _cheapest_first(
        self, operands: Sequence[Predicate], slices: Sequence[FoundRows]
    ) -> Sequence[Predicate]:
        """The operands by the steps that they take in the first slice: others are similar."""
        first = slices[0]
        if len(operands) == 1 or first.plan.total < LARGE_FILE:
            return operands
        try:
            with self._entries(first) as entries:
                return sorted(operands, key=entries.steps)
        except EntryUnusable:  # looking it up reports it
            return operands

    def _looked_up(
        self,
        leaf: Condition,
        slices: Sequence[FoundRows],
        left: _Left,
        *,
        counted: bool = False,
    ) -> list[Bounds]:
        """The rows of a leaf in each slice.

        Args:
            counted: Whether their number is enough, where an entry knows it.
        """
        found = self._narrowed(leaf, slices, left)
        share = cache(lambda: _expected_share(leaf, slices[0].plan))

        def fill(look_up: Callable[[Sequence[int]], Sequence[Bounds | None]]) -> None:
            others = [n for n, each in enumerate(found) if each is None]
            if others:
                for n, bounds in zip(others, look_up(others), strict=True):
                    found[n] = bounds

        def alone(n: int) -> Bounds:
            return self._alone(leaf, slices[n], left[n], counted, share)

        local = not self.pool.is_remote
        fill(lambda others: self._together(leaf, [slices[n] for n in others]))
        fill(
            lambda others: self._spared(
                leaf, [slices[n] for n in others], [left[n] for n in others]
            )
        )
        fill(lambda others: mapped(alone, others, self.parallelism, may_be_fast=local))
        return [each for each in found if each is not None]

    def _spared(
        self, leaf: Condition, slices: Sequence[FoundRows], left: _Left
    ) -> list[Bounds | None]:
        """Unanswered for those of many slices with open entries, if to look up each by itself takes
        longer than to test the rows that it may rule out: by the first one, since others are
        similar. None for slices to be looked up; so are those whose entries are not open, which
        later calls for many entries ask."""
        spared: list[Bounds | None] = [None] * len(slices)
        if not self.superset_ok or len(slices) < MANY_SLICES:
            return spared
        is_open = self.pool.is_open
        among = [n for n, each in enumerate(slices) if all(map(is_open, each.plan.entries))]
        if len(among) < MANY_SLICES or self._is_worth_it(leaf, slices[among[0]], left[among[0]]):
            return spared
        for n in among:
            spared[n] = Bounds.unanswered()
            if left[n] is None:
                slices[n].statistics.note = TAKES_LONGER
        return spared

    def _is_worth_it(self, leaf: Condition, each: FoundRows, rows: BitMap | None) -> bool:
        """Whether to look a leaf up in each of many slices like this one.

        Args:
            rows: Those that other conditions leave; None for all.
        """
        try:
            with self._entries(each) as entries:
                reading = self._reading(leaf, each, entries, of_many=True)
                steps = entries.steps(leaf) if rows is None else 0
        except EntryUnusable:  # looking it up reports it
            return True
        return reading is None or look_up_each_pays(leaf, steps, rows, reading)

    def _alone(
        self,
        leaf: Condition,
        each: FoundRows,
        left: BitMap | None,
        counted: bool,
        share: Callable[[], float],
    ) -> Bounds:
        """The rows of a leaf in one slice; unanswered if they are counted.

        Args:
            share: The share of the rows that is expected to match.
        """
        if each.failure is not None:
            return Bounds.unanswered()
        try:
            with self._entries(each) as entries:
                count, bounds = None, Bounds.unanswered()
                if counted and not each.plan.file_slice.log_files:
                    count = entries.count(leaf)
                if count is None:
                    bounds = self._asked(leaf, each, entries, left, share)
                    each.footer = entries.footer()
                    is_limited = each.reading is not None and each.reading.scan is not None
                    if is_limited and left is None and bounds.possible is None:
                        each.statistics.note = TAKES_LONGER
            each.count = count  # only now is it known that the entry has not changed
            return bounds
        except EntryUnusable as error:
            if isinstance(leaf, Together):  # entries of other index types may answer each of them
                return self._all_of(leaf.operands, [each], [left])[0]
            each.failure = error
            return Bounds.unanswered()

    def _reading(
        self, leaf: Condition, each: FoundRows, entries: SliceEntries, *, of_many: bool = False
    ) -> ReadingSteps | None:
        """What reading the base file costs in place of a look-up; None if no look-up is left out,
        or no entry answers.

        Args:
            of_many: Whether one slice tells it for many, which may lack an entry that answers. Of
                one small file, to find out takes longer than to look it up.
        """
        if not self.superset_ok:
            return None
        if entries.total < LARGE_FILE and not of_many:
            return ReadingSteps.unknown(DEFAULTS)
        if each.reading is None:
            footer = entries.footer() if of_many else entries.footer_for(leaf)
            each.reading = None if footer is None else self.reading(each, footer)
        return each.reading

    def _asked(
        self,
        leaf: Condition,
        each: FoundRows,
        entries: SliceEntries,
        left: BitMap | None,
        expected: Callable[[], float],
    ) -> Bounds:
        """The rows of a leaf in one slice, unless that takes longer than reading what it may rule
        out: of all rows, or of those that are left."""
        is_large = entries.total >= LARGE_FILE
        if self.superset_ok and left is None and is_large:
            short = entries.rows(leaf, SHORT_LOOKUP, superset_ok=True)
            if short.possible is not None:
                return short
        reading = self._reading(leaf, each, entries)
        checked, most = Bounds.unanswered(), None
        if reading is not None and reading.scan is not None:
            most = reading.ruling_out(expected())
        if left is not None and len(left) <= CHECKED_SINGLY:
            checked = entries.narrowed(leaf, left)
            if checked.exact_rows is not None or checked.possible == BitMap():
                return checked
        if reading is not None and left is not None:
            remaining = left if checked.possible is None else checked.possible
            share = min(1.0, entries.estimate(leaf) / entries.total) if is_large else 0.0
            steps = most_steps(leaf, remaining, share, reading)
            most = steps if most is None else min(most, steps)
        found = entries.rows(leaf, most, superset_ok=self.superset_ok)
        if found.possible is None and not isinstance(leaf, Together):
            found = entries.pages(leaf)
        return found if checked.possible is None else found.within(checked.possible)

    def _narrowed(
        self, leaf: Condition, slices: Sequence[FoundRows], left: _Left
    ) -> list[Bounds | None]:
        """The rows of a leaf among the few that are left in a slice, as far as one call tells."""
        found: list[Bounds | None] = [None] * len(slices)
        few = [n for n, rows in enumerate(left) if rows is not None and len(rows) <= CHECKED_SINGLY]
        if not narrow_together(len(few)):
            return found
        some = [slices[n] for n in few]
        answer, servings = _answering(leaf, some)
        if answer is Answer.EXACT:
            rows = [rows for n in few if (rows := left[n]) is not None]
            narrowed = narrowed_rows(leaf, servings, rows, self.pool)
            for n, each in zip(few, _taken(narrowed, some, answer), strict=True):
                found[n] = each
        return found

    def _together(self, leaf: Condition, slices: Sequence[FoundRows]) -> list[Bounds | None]:
        """The rows of a leaf in each slice, as far as one call tells."""
        answer, servings = _answering(leaf, slices)
        if answer is Answer.NONE or not look_up_together(
            len(slices), lambda: estimated_rows(slices[0].plan, leaf)
        ):
            return [None] * len(slices)
        answers = self._listed(leaf, slices, servings) if isinstance(leaf, In) else None
        answers = few_rows(leaf, servings, self.pool) if answers is None else answers
        return _taken(answers, slices, answer)

    def _listed(
        self, leaf: In, slices: Sequence[FoundRows], servings: Sequence[ServingEntry]
    ) -> Sequence[RowsOfOpen | None] | None:
        """The rows of a list's values, of each slice for those that its base file may hold; None if
        that is not known of any."""
        if self.routes is None:
            return None
        base_files = [each.plan.file_slice.base_file for each in slices]
        located = self.routes(leaf, servings[0].index_type.name, base_files)
        if located is None or not located.is_known.any():
            return None
        answers: list[RowsOfOpen | None] = [None] * len(servings)
        known = np.flatnonzero(located.is_known)
        values = located.routed.of_files(known)
        if values.count <= _MOST_PAIRS:
            listed = listed_rows(leaf, [servings[n] for n in known.tolist()], values, self.pool)
            for n, each in zip(known.tolist(), listed, strict=True):
                answers[n] = each
        return answers

    def _entries(self, each: FoundRows) -> AbstractContextManager[SliceEntries]:
        return SliceEntries.leased(each.plan, self.pool, each.statistics)


def _expected_share(leaf: Condition, plan: SlicePlan) -> float:
    """The share of a slice's rows for which a leaf is expected to be TRUE; 0 if that is unknown."""
    expected = estimated_rows(plan, leaf)
    return 0.0 if expected is None else min(1.0, expected.expected / max(plan.total, 1))


def _alike(slices: Sequence[FoundRows]) -> Iterable[list[FoundRows]]:
    """The slices, grouped by those whose entries answer the same predicate alike."""
    groups: dict[Hashable, list[FoundRows]] = {}
    layouts: tuple[int, ...] = ()
    group: list[FoundRows] = []
    for each in slices:
        before, layouts = layouts, tuple([entry.layout for entry in each.plan.entries])
        # The hash of a long list takes longer than to see that it is the same.
        if not group or layouts != before or each.predicate is not group[0].predicate:
            group = groups.setdefault((each.predicate, layouts), [])
        group.append(each)
    return groups.values()


def _answering(leaf: Condition, slices: Sequence[FoundRows]) -> tuple[Answer, list[ServingEntry]]:
    """The best answer of entries to a leaf, and the entry of each slice that gives it. The slices'
    entries are alike."""
    typical = slices[0].plan.entries
    best = best_answer(typical, leaf)
    if best is Answer.NONE:
        return best, []
    position = [each.answer(leaf) for each in typical].index(best)
    return best, [each.plan.entries[position] for each in slices]


def _taken(
    answers: Sequence[RowsOfOpen | None], slices: Sequence[FoundRows], answer: Answer
) -> list[Bounds | None]:
    """The rows that open entries have answered, noted in their slices; None where none did."""
    found: list[Bounds | None] = []
    for each, answered in zip(slices, answers, strict=True):
        if answered is None:
            found.append(None)
            continue
        found.append(Bounds.of(answered.rows, exact=answer is Answer.EXACT))
        each.footer = answered.entry.bounds.footer
        each.statistics.lookup_ms += answered.ms
        each.statistics.ms += answered.ms
    return found


def _every_row(each: FoundRows) -> BitMap:
    return BitMap(range(each.plan.total))
