"""Groups the conjuncts of a predicate by look-up, as the entries of a slice answer them together.

What an entry answers depends only on its layout, so the groups are the same for most slices of a
table: they are made once, and kept.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from hudi_index_service.index.contract import Answer, Conjunction
from hudi_index_service.optimizer.serving import ServingEntry, best_answer
from hudi_index_service.predicate.expression import (
    And,
    Compare,
    In,
    Like,
    Operator,
    Predicate,
    RLike,
    Together,
    conjunction,
    disjunction,
)
from hudi_index_service.predicate.fold import fold


def grouped(
    predicate: Predicate, entries: Iterable[ServingEntry], *, exact: bool = False
) -> Predicate:
    """The predicate, whose conjuncts that one look-up answers are each a `Together`: those on one
    column, and those on the first columns of a composite key.

    Args:
        predicate: In negation normal form.
        entries: Those of a slice, or one of each layout.
        exact: Whether all rows found have to match. If so, all conjuncts of an AND are looked up
            together where possible. If rows are read and checked anyway, groups stay apart, so that
            look-ups can stop early.
    """
    return _grouped(predicate, _Layouts.of(entries), exact)


def is_answered_exactly(predicate: Predicate, entries: Iterable[ServingEntry]) -> bool:
    """Whether the entries of a slice alone determine for which rows a predicate is TRUE.

    Args:
        predicate: In negation normal form.
    """
    return _is_answered_exactly(predicate, _Layouts.of(entries))


@dataclass(frozen=True, slots=True)
class _Layouts:
    """What some entries answer, whatever rows they hold."""

    layouts: tuple[int, ...]
    entries: tuple[ServingEntry, ...] = field(compare=False)

    @classmethod
    def of(cls, entries: Iterable[ServingEntry]) -> "_Layouts":
        own = tuple(entries)
        return cls(tuple([each.layout for each in own]), own)

    def answer(self, conjuncts: And, exact: bool) -> bool:
        """Whether one entry answers all conjuncts in one look-up, each as well as any entry."""
        best = best_answer(self.entries, conjuncts)
        if best is Answer.NONE or (exact and best is not Answer.EXACT):
            return False
        return len(self.entries) == 1 or any(
            entry.answer(conjuncts) is best
            and all(
                entry.answer(each) is best_answer(self.entries, each) for each in conjuncts.operands
            )
            for entry in self.entries
        )


@lru_cache(maxsize=64)
def _is_answered_exactly(predicate: Predicate, layouts: _Layouts) -> bool:
    return fold(
        _grouped(predicate, layouts, exact=True),
        lambda leaf: best_answer(layouts.entries, leaf) is Answer.EXACT,
        all_of=all,
        any_of=all,
        together=True,
    )


@lru_cache(maxsize=64)  # some predicates take megabytes
def _grouped(predicate: Predicate, layouts: _Layouts, exact: bool) -> Predicate:
    def all_of(parts: Iterable[Predicate]) -> Predicate:
        groups = _by_key(_by_column(parts, layouts, exact), layouts, exact)
        if len(groups) < 2:
            return conjunction(groups)
        together = Conjunction(tuple(groups))
        return together if exact and layouts.answer(together, exact) else And(tuple(groups))

    return fold(predicate, lambda leaf: leaf, all_of, disjunction)


def _by_column(parts: Iterable[Predicate], layouts: _Layouts, exact: bool) -> list[Predicate]:
    groups: list[tuple[Predicate, ...]] = []
    for part in parts:
        column = _range_column(part)
        for number, group in enumerate(groups):
            if column is None or _range_column(group[0]) != column:
                continue
            if layouts.answer(Together((*group, part)), exact):
                groups[number] = (*group, part)
                break
        else:
            groups.append((part,))
    return [Together(group) if len(group) > 1 else group[0] for group in groups]


def _by_key(groups: list[Predicate], layouts: _Layouts, exact: bool) -> list[Predicate]:
    """The groups, those on the first columns of the longest key that fits made one."""
    best: tuple[Predicate, ...] = ()
    for key in (key for each in layouts.entries for key in each.keys):
        of_key: tuple[Predicate, ...] = ()
        for name in key:
            of_column = [each for each in groups if each.columns() == {name}]
            together = Conjunction((*of_key, *of_column))
            if not of_column or (of_key and not layouts.answer(together, exact)):
                break
            of_key = together.operands
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
