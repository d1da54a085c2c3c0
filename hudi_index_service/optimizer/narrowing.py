"""Checks whether the entries of a slice narrow a predicate."""

from collections.abc import Callable, Hashable
from functools import partial
from typing import TypeVar

from hudi_index_service.index.contract import Answer
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.predicate.expression import And, Constant, Or, Predicate

_Said = TypeVar("_Said")


def asked_once(ask: Callable[[SlicePlan], _Said]) -> Callable[[SlicePlan], _Said]:
    """Caches `ask`: it is called only once for all slices whose entries answer the same leaves, as
    those of most slices of a table do."""
    results: dict[Hashable, _Said] = {}

    def cached(plan: SlicePlan) -> _Said:
        layouts = tuple([(each.index_type.name, each.layout) for each in plan.entries])
        if layouts not in results:
            results[layouts] = ask(plan)
        return results[layouts]

    return cached


def narrows(predicate: Predicate, plan: SlicePlan) -> bool:
    """Whether the slice's entries narrow a predicate in negation normal form. One answered conjunct
    of an AND suffices; every arm of an OR must be answered."""
    match predicate:
        case Constant():
            return predicate.value is not True
        case And(operands):
            return any(narrows(each, plan) for each in operands)
        case Or(operands):
            return all(narrows(each, plan) for each in operands)
        case leaf:
            return any(entry.answer(leaf) is not Answer.NONE for entry in plan.entries)


def narrowed_slices(plan: QueryPlan, predicate: Predicate) -> tuple[bool, ...]:
    """For each slice to be read by index, whether its entries narrow the predicate; True for all
    others, which have no entries."""
    narrowed = asked_once(partial(narrows, predicate))
    return tuple([each.access is not Access.INDEX or narrowed(each) for each in plan.slices])
