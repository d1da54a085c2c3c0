"""Scans if the query has no where, since there is nothing to look up."""

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.plan import QueryPlan


def no_predicate(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Scans everything when there is no predicate."""
    if plan.predicate is None:
        return plan.decline_index("the query has no predicate", "no_predicate")
    return plan
