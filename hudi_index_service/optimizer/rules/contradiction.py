"""Reads nothing for a predicate that no row can make TRUE, regardless of the table's contents."""

from dataclasses import replace

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.plan import QueryPlan
from hudi_index_service.predicate.expression import Constant


def contradiction(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Skips every slice, even with log files, if the predicate is never TRUE, as written or as
    simplified by `implied_predicates`."""
    if not isinstance(plan.predicate, Constant) or plan.predicate.value is True:
        return plan
    reason = "the predicate is TRUE for no row"
    return replace(
        plan, slices=tuple(each.skipped(reason, "contradiction") for each in plan.slices)
    )
