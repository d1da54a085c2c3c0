"""Applies the kill switches of table and settings, and use_index="never"."""

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.plan import QueryPlan


def index_switched_off(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Scans everything when the query, the table or the settings switch indexes off."""
    if plan.use_index == "never":
        return plan.decline_index('the query says use_index="never"', "index_switched_off")
    if plan.switched_off:
        reason = (
            "the table switches its indexes off (hudi-index disable, "
            "or hoodie.index.read.enabled=false)"
        )
        return plan.decline_index(reason, "index_switched_off")
    if not settings.read.enabled:
        reason = "the settings switch indexes off (read.enabled=false)"
        return plan.decline_index(reason, "index_switched_off")
    return plan
