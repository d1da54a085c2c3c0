"""Drops conjuncts that others imply and merges overlapping ranges before look-up (see
`hudi_index_service.predicate.simplify`). The residual on the rows read is the predicate as written.
"""

from dataclasses import replace

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.plan import QueryPlan
from hudi_index_service.predicate.simplify import simplified


def implied_predicates(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Replaces the predicate by a shorter one that is TRUE for the same rows."""
    if plan.predicate is None or not plan.predicate.children:
        return plan
    shorter = simplified(plan.predicate)
    return plan if shorter is plan.predicate else replace(plan, predicate=shorter)
