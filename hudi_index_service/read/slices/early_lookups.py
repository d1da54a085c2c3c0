"""Looks up many slices by few calls: one call returns the rows of a leaf in all open entries.
Slices with few rows then need no look-up of their own; those without any are not read.

A call to an index takes longer than most look-ups in it, so a query on many base files, most of
which hold few rows or none, would otherwise spend its time on calls.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from pyroaring import BitMap

from hudi_index_service.errors import EntryUnusable
from hudi_index_service.index.contract import Answer, Truths
from hudi_index_service.index.metadata.segments.exclusion import LocatedValues
from hudi_index_service.optimizer.cost.constants import FEW_ROWS
from hudi_index_service.optimizer.decide import look_up_together
from hudi_index_service.optimizer.estimates.manifests import estimated_rows
from hudi_index_service.optimizer.grouping import grouped
from hudi_index_service.optimizer.plan import Access, Routes, SlicePlan
from hudi_index_service.optimizer.serving import ServingEntry
from hudi_index_service.predicate.expression import In, Predicate
from hudi_index_service.predicate.fold import Condition
from hudi_index_service.read.row_ids import Bounds
from hudi_index_service.read.slices.empty_slices import slices_without_rows
from hudi_index_service.read.slices.listed_rows import ListedRows, listed_rows
from hudi_index_service.read.slices.reader_pool import OpenEntry, ReaderPool

Found: TypeAlias = Mapping[Predicate, Bounds]
"""The rows in one slice of leaves, and of conjuncts looked up together, as far as known."""

_MOST_PAIRS = 2**22
"""Pairs of an entry and a value that are looked up together."""

_NOTHING: Found = MappingProxyType({})


class EarlyLookups:
    """What open entries answered before the slices of one query are read.

    Args:
        routes: Tells which values of a list base files may hold.
    """

    def __init__(self, routes: Routes | None = None) -> None:
        self._routes = routes
        self._found: dict[str, dict[Predicate, Bounds]] = {}
        self._listed: dict[str, dict[Predicate, ListedRows]] = {}

    def found(self, plan: SlicePlan) -> Found:
        """The rows of leaves in the slice that are known."""
        return self._found.get(_path(plan), _NOTHING)

    def listed(self, plan: SlicePlan, predicate: Predicate) -> ListedRows | None:
        """The rows of a whole predicate that is a list of values, and the entry that knew them;
        None if they are not known."""
        return self._listed.get(_path(plan), {}).get(predicate)

    def look_up(
        self, plans: Sequence[SlicePlan], predicate: Predicate | None, pool: ReaderPool
    ) -> Set[int]:
        """Looks up the predicate in many slices together, and returns the positions of those in
        which no row makes it TRUE. Slices without an open entry, or with a damaged one, are left
        out.

        Args:
            predicate: In negation normal form.
        """
        able = np.array([each.access is Access.INDEX and bool(each.entries) for each in plans])
        if predicate is None or not able.any():
            return frozenset()
        tree, slices = grouped(predicate, plans[int(np.argmax(able))].entries), _Slices(plans, pool)
        is_empty = slices_without_rows(
            tree, able, lambda leaf, among: self._without(leaf, slices, among), every_arm=True
        )
        return frozenset(np.flatnonzero(is_empty).tolist())

    def _without(self, leaf: Condition, slices: "_Slices", among: Truths) -> Truths:
        """Looks up a leaf in some slices, and returns those in which it is TRUE for no row."""
        is_empty = np.zeros_like(among)
        for entries in slices.answering(leaf, np.flatnonzero(among).tolist()):
            found = self._rows(leaf, entries, slices)
            for number, rows in zip(entries.numbers, found, strict=True):
                if rows is None:
                    continue
                exact = entries.answer is Answer.EXACT
                known = Bounds.exactly(rows) if exact else Bounds.among(rows)
                self._found.setdefault(_path(slices.plans[number]), {})[leaf] = known
                is_empty[number] = not rows
        return is_empty

    def _rows(
        self, leaf: Predicate, entries: "_Entries", slices: "_Slices"
    ) -> Sequence[BitMap | None]:
        """The rows in each slice; None for those that no call answers."""
        located: LocatedValues | None = None
        if isinstance(leaf, In) and self._routes is not None:
            base_files = [slices.plans[number].file_slice.base_file for number in entries.numbers]
            located = self._routes.located(leaf, entries.entries[0].index_type.name, base_files)
        if not isinstance(leaf, In) or located is None or not located.is_known.any():
            return entries.rows(leaf, slices.pool)
        rows: list[BitMap | None] = [None] * len(entries.numbers)
        known = np.flatnonzero(located.is_known)
        values = located.routed.of_files(known)
        if values.count > _MOST_PAIRS:
            return rows
        servings = [entries.entries[at] for at in known.tolist()]
        answers = listed_rows(leaf, servings, values, slices.pool)
        for at, answer in zip(known.tolist(), answers, strict=True):
            if answer is not None:
                path = _path(slices.plans[entries.numbers[at]])
                self._listed.setdefault(path, {})[leaf] = answer
                rows[at] = answer.rows
        return rows


@dataclass(frozen=True, slots=True)
class _Entries:
    """Entries of one layout, which answer a leaf alike, of slices by number."""

    answer: Answer
    numbers: list[int] = field(default_factory=list)
    entries: list[ServingEntry] = field(default_factory=list)

    def add(self, number: int, entry: ServingEntry) -> None:
        self.numbers.append(number)
        self.entries.append(entry)

    def rows(self, leaf: Predicate, pool: ReaderPool) -> list[BitMap | None]:
        """The rows in each slice; None for those that the call does not answer."""
        with pool.lease_open(self.entries) as opened:
            readers = [each.reader for each in opened if each is not None]
            answers: Sequence[BitMap | None] | None = None
            if readers:
                try:
                    together = self.entries[0].index_type.together(readers)
                    answers = None if together is None else together.few_rows(leaf, FEW_ROWS)
                except EntryUnusable:  # looking up each slice reports it
                    answers = None
            rows = iter(answers or [None] * len(readers))
            return [None if each is None else _valid(each, next(rows)) for each in opened]


@dataclass(frozen=True, slots=True)
class _Slices:
    """The slices of a query, by number."""

    plans: Sequence[SlicePlan]
    pool: ReaderPool

    def answering(self, leaf: Predicate, among: Sequence[int]) -> list[_Entries]:
        """For each slice, the first of the entries that answer the leaf best, by their layout; none
        if each slice is better looked up by itself."""
        if not among or not look_up_together(
            len(among), lambda: estimated_rows(self.plans[among[0]], leaf)
        ):
            return []
        groups: dict[tuple[str, int], _Entries] = {}
        columns = leaf.columns()
        for number in among:
            plan = self.plans[number]
            if not columns.isdisjoint(plan.values):
                continue  # the partition's path has the column's value, not the base file
            best: _Entries | None = None
            for entry in plan.entries:
                key = entry.index_type.name, entry.layout
                if key not in groups:
                    groups[key] = _Entries(entry.answer(leaf))
                answer = groups[key].answer
                if answer is Answer.EXACT or (best is None and answer is not Answer.NONE):
                    best, of_best = groups[key], entry
                if answer is Answer.EXACT:
                    break
            if best is not None:
                best.add(number, of_best)
        return [each for each in groups.values() if each.numbers]


def _valid(entry: OpenEntry, rows: BitMap | None) -> BitMap | None:
    """The answer, unless the file has changed since it was opened."""
    return None if rows is None or entry.file.has_changed() else rows


def _path(plan: SlicePlan) -> str:
    base_file = plan.file_slice.base_file
    return "" if base_file is None else base_file.path
