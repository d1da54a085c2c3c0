"""Checks whether the entries of a slice narrow a predicate."""

from collections.abc import Callable, Hashable
from functools import partial
from typing import TypeVar

from hudi_index_service.index.contract import Answer
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.optimizer.serving import best_answer
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.predicate.fold import fold

_Result = TypeVar("_Result")


def cached_by_layout(check: Callable[[SlicePlan], _Result]) -> Callable[[SlicePlan], _Result]:
    """Caches `check`: it is called once for all slices whose entries have the same layouts, as
    those of most slices of a table do."""
    results: dict[Hashable, _Result] = {}

    def cached(plan: SlicePlan) -> _Result:
        layouts = tuple([(each.index_type.name, each.layout) for each in plan.entries])
        if layouts not in results:
            results[layouts] = check(plan)
        return results[layouts]

    return cached


def narrows(predicate: Predicate, plan: SlicePlan) -> bool:
    """Whether the slice's entries narrow a predicate in negation normal form. One answered conjunct
    of an AND suffices; every arm of an OR must be answered."""

    def answered(leaf: Predicate) -> bool:
        return best_answer(plan.entries, leaf) is not Answer.NONE

    return fold(predicate, answered, all_of=any, any_of=all)


def narrowed_slices(plan: QueryPlan, predicate: Predicate) -> tuple[bool, ...]:
    """For each slice to be read by index, whether its entries narrow the predicate; True for all
    others, which have no entries."""
    narrowed = cached_by_layout(partial(narrows, predicate))
    return tuple([each.access is not Access.INDEX or narrowed(each) for each in plan.slices])
