"""Opens no index where most of the table is scanned anyway; see `read.min_coverage`."""

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.plan import Access, QueryPlan


def low_coverage(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Scans everything when less than `read.min_coverage` of the bytes to be read are in base files
    that an entry serves."""
    least = settings.read.min_coverage
    if not least or plan.use_index == "require":
        return plan
    covered = plan.size(Access.INDEX)
    size = covered + plan.size(Access.SCAN, Access.MERGE)
    if covered >= least * size:
        return plan
    reason = f"entries serve {covered / size:.0%} of the bytes, less than {least:.0%}"
    return plan.decline_index(f"{reason} (read.min_coverage)", "low_coverage")
