"""Scans small tables, which takes less time than opening an index; see `read.min_table_mb`."""

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.plan import Access, QueryPlan


def small_table(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Scans everything when the base files to be read are smaller than `read.min_table_mb`."""
    least = settings.read.min_table_mb
    if not least or plan.use_index == "require":
        return plan
    size = plan.size(Access.INDEX, Access.SCAN, Access.MERGE)
    if size >= least * 2**20:
        return plan
    reason = f"the base files to be read have less than read.min_table_mb={least:g}"
    return plan.decline_index(reason, "small_table")
