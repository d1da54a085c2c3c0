"""Scans if the predicate has many leaves. RFC-51's own example of a rule: "SQL with more than 10
predicates does not push down to use secondary index, but uses the existing scanning logic"."""

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.plan import QueryPlan


def too_many_predicates(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Scans everything when the predicate has more leaves than `read.max_predicates`."""
    if plan.predicate is None:
        return plan
    leaves = sum(1 for _ in plan.predicate.leaves())
    if leaves <= settings.read.max_predicates:
        return plan
    reason = f"{leaves} predicates are more than read.max_predicates={settings.read.max_predicates}"
    return plan.decline_index(reason, "too_many_predicates")
