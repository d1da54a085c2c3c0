"""An index that narrows nothing is not worth opening: no conjunct that it answers, or an OR with an
arm that it does not answer."""

from hudi_index_service.config import Settings
from hudi_index_service.index.contract import Answer
from hudi_index_service.optimizer.plan import QueryPlan, SlicePlan
from hudi_index_service.predicate.expression import And, Constant, Or, Predicate


def no_usable_index(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Scans the slices whose entries cannot narrow the predicate."""
    predicate = plan.predicate
    if predicate is None:
        return plan
    return plan.decline_index(
        "no index narrows the predicate",
        "no_usable_index",
        where=lambda slice_plan: not _narrows(predicate, slice_plan),
    )


def _narrows(predicate: Predicate, slice_plan: SlicePlan) -> bool:
    match predicate:
        case Constant():
            return predicate.value is not True
        case And(operands):
            return any(_narrows(each, slice_plan) for each in operands)
        case Or(operands):
            return all(_narrows(each, slice_plan) for each in operands)
        case leaf:
            return any(entry.answer(leaf) is not Answer.NONE for entry in slice_plan.entries)
