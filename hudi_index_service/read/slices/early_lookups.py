"""Looks up many slices by few calls: their open entries are asked together for the rows of each
conjunct. Slices with few rows then need no look-up of their own, and those without any are not read.

A call to an index takes longer than most look-ups in it, so a query on many base files, most of
which hold few rows or none, would otherwise spend its time on calls.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from pyroaring import BitMap

from hudi_index_service.index.contract import Answer, Conjunction
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.optimizer.serving import ServingEntry
from hudi_index_service.predicate.expression import And, Constant, Or, Predicate
from hudi_index_service.read.row_ids import RowSet, joined
from hudi_index_service.read.slices.reader_pool import OpenEntry, ReaderPool
from hudi_index_service.read.slices.slice_entries import INDEX_FAILURES

FEWEST_SLICES = 2
"""The number of slices below which each is asked by itself."""

LeafKey: TypeAlias = tuple[int, ...]
"""The id of a leaf, or those of conjuncts that are looked up together."""

Found: TypeAlias = Mapping[LeafKey, RowSet]
"""The rows of leaves in one slice, as far as they are known."""

_NOTHING: Found = MappingProxyType({})


def leaf_key(predicate: Predicate) -> LeafKey:
    """The key of a leaf, or of conjuncts that are looked up together; unique while they live."""
    if isinstance(predicate, And | Conjunction):
        return tuple(key for each in predicate.operands for key in leaf_key(each))
    return (id(predicate),)


@dataclass(slots=True)
class EarlyLookups:
    """What open entries answered before the slices of one query are read."""

    _found: dict[str, dict[LeafKey, RowSet]] = field(default_factory=dict)

    def found(self, plan: SlicePlan) -> Found:
        """The rows of leaves in the slice that are known."""
        return self._found.get(_path(plan), _NOTHING)

    def ask(
        self, plans: Sequence[SlicePlan], predicate: Predicate | None, pool: ReaderPool
    ) -> frozenset[int]:
        """Looks up what many slices answer together, and returns the positions of those in which no
        row makes the predicate TRUE. Slices without an open entry, or with a damaged one, answer
        nothing.

        Args:
            predicate: In negation normal form. It outlives this object.
        """
        remaining = [n for n, each in enumerate(plans) if each.access is Access.INDEX]
        remaining = [n for n in remaining if plans[n].entries]
        empty: set[int] = set()
        for leaf in _conjuncts(predicate, plans, remaining):
            if len(remaining) < FEWEST_SLICES:
                break
            for some in _alike(leaf, plans, remaining):
                for position, rows in zip(some.positions, some.rows(leaf, pool), strict=True):
                    if rows is None:
                        continue
                    if not rows:
                        empty.add(position)
                    known = RowSet(rows, exact=some.answer is Answer.EXACT)
                    self._found.setdefault(_path(plans[position]), {})[leaf_key(leaf)] = known
            remaining = [n for n in remaining if n not in empty]
        return frozenset(empty)


def _conjuncts(
    predicate: Predicate | None, plans: Sequence[SlicePlan], positions: Sequence[int]
) -> list[Predicate]:
    """The conjuncts that are looked up, grouped as the entries of the first slice answer them."""
    if predicate is None or not positions:
        return []
    entries = plans[positions[0]].entries
    operands = predicate.operands if isinstance(predicate, And) else (predicate,)
    leaves = [each for each in operands if not isinstance(each, And | Or | Constant)]
    return joined(
        leaves, lambda some: any(each.answer(some) is not Answer.NONE for each in entries)
    )


@dataclass(frozen=True, slots=True)
class _Alike:
    """Slices by position, each with an entry, all of one layout, that answers a leaf."""

    answer: Answer
    positions: list[int] = field(default_factory=list)
    servings: list[ServingEntry] = field(default_factory=list)

    def rows(self, leaf: Predicate, pool: ReaderPool) -> list[BitMap | None]:
        """The rows of each slice; None for those that the call does not answer."""
        with pool.lease_open(self.servings) as entries:
            known = [each for each in entries if each is not None]
            answers: Sequence[BitMap | None] | None = None
            if len(known) >= FEWEST_SLICES:
                kind = self.servings[0].index_type
                try:
                    answers = kind.few_rows(leaf, [each.reader for each in known])
                except INDEX_FAILURES:  # looking up each slice reports it
                    answers = None
            if answers is None:
                return [None] * len(entries)
            rows = iter(answers)
            return [None if each is None else _valid(each, next(rows)) for each in entries]


def _valid(entry: OpenEntry, rows: BitMap | None) -> BitMap | None:
    """The answer, unless the file has changed since it was opened."""
    return None if rows is None or entry.file.has_changed() else rows


def _alike(
    leaf: Predicate, plans: Sequence[SlicePlan], positions: Sequence[int]
) -> Iterator[_Alike]:
    """The slices that can answer the leaf, grouped by entries of one layout."""
    answers: dict[tuple[str, int], Answer] = {}
    groups: dict[tuple[str, int], _Alike] = {}
    columns = leaf.columns()
    for position in positions:
        plan = plans[position]
        if not columns.isdisjoint(plan.values):
            continue  # the partition's path has the column's value, not the base file
        best: tuple[str, int] | None = None
        for serving in plan.entries:
            key = serving.index_type.name, serving.layout
            if key not in answers:
                answers[key] = serving.answer(leaf)
                groups[key] = _Alike(answers[key])
            if answers[key] is Answer.EXACT or (best is None and answers[key] is not Answer.NONE):
                best, entry = key, serving
            if answers[key] is Answer.EXACT:
                break
        if best is not None:
            groups[best].positions.append(position)
            groups[best].servings.append(entry)
    return (each for each in groups.values() if len(each.positions) >= FEWEST_SLICES)


def _path(plan: SlicePlan) -> str:
    base_file = plan.file_slice.base_file
    return "" if base_file is None else base_file.path
