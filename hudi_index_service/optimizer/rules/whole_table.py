"""Rules that scan the whole table, and open no index: one is switched off, or cannot pay."""

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.plan import Access, QueryPlan


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


def no_predicate(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Scans everything when there is no predicate."""
    if plan.predicate is None:
        return plan.decline_index("the query has no predicate", "no_predicate")
    return plan


def too_many_predicates(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Scans everything when the predicate has more leaves than `read.max_predicates`.

    Source: RFC-51's own example of a rule, "SQL with more than 10 predicates does not push down to
    use secondary index, but uses the existing scanning logic".
    """
    if plan.predicate is None:
        return plan
    leaves = sum(1 for _ in plan.predicate.leaves())
    if leaves <= settings.read.max_predicates:
        return plan
    reason = f"{leaves} predicates are more than read.max_predicates={settings.read.max_predicates}"
    return plan.decline_index(reason, "too_many_predicates")


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
