"""A predicate that no row makes TRUE, whatever is in the table: nothing is read."""

from dataclasses import replace

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.plan import QueryPlan
from hudi_index_service.predicate.expression import Constant


def contradiction(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Skips every slice, also those with log files, of a predicate that is never TRUE, as written
    or as `implied_predicates` found out."""
    if not isinstance(plan.predicate, Constant) or plan.predicate.value is True:
        return plan
    reason = "the predicate is TRUE for no row"
    return replace(
        plan, slices=tuple(each.skipped(reason, "contradiction") for each in plan.slices)
    )
