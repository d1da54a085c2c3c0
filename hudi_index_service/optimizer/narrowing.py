"""Whether the entries of a slice leave any row out."""

from collections.abc import Callable, Hashable
from functools import partial
from typing import TypeVar

from hudi_index_service.index.contract import Answer
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.predicate.expression import And, Constant, Or, Predicate

_Said = TypeVar("_Said")


def asked_once(ask: Callable[[SlicePlan], _Said]) -> Callable[[SlicePlan], _Said]:
    """What `ask` says of a slice, asked once for all slices whose entries answer the same leaves:
    most of a table's do."""
    known: dict[Hashable, _Said] = {}

    def asked(plan: SlicePlan) -> _Said:
        layouts = tuple([(each.index_type.name, each.columns.layout) for each in plan.entries])
        if layouts not in known:
            known[layouts] = ask(plan)
        return known[layouts]

    return asked


def narrows(predicate: Predicate, plan: SlicePlan) -> bool:
    """Whether the slice's entries narrow a predicate in negation normal form: any conjunct that
    they answer does, but every arm of an OR has to be answered."""
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
    """Of each slice that is to be read by index, whether its entries narrow the predicate; of all
    others, which have none to be asked, that they do."""
    narrowed = asked_once(partial(narrows, predicate))
    return tuple([each.access is not Access.INDEX or narrowed(each) for each in plan.slices])
