"""Declines an index that narrows nothing and so is not worth opening."""

from collections.abc import Set
from dataclasses import replace

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.narrowing import narrowed_slices
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan

_REASON, _RULE = "no index narrows the predicate", "no_usable_index"


def no_usable_index(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Scans the slices whose entries cannot narrow the predicate."""
    predicate = plan.predicate
    if predicate is None:
        return plan
    narrowed = plan.narrowed or narrowed_slices(plan, predicate)
    if all(narrowed):
        return plan
    columns = predicate.columns()
    slices = tuple(
        each
        if is_narrowed or each.access is not Access.INDEX
        else each.declined(_reason(each, columns), _RULE)
        for each, is_narrowed in zip(plan.slices, narrowed, strict=True)
    )
    return replace(plan, slices=slices, narrowed=narrowed)


def _reason(plan: SlicePlan, columns: Set[str]) -> str:
    """Why no index narrows a predicate on these columns: perhaps since an entry lacks one of
    them."""
    for serving in plan.entries:
        for each in serving.entry.manifest.skipped:
            if each.name in columns:
                return (
                    f"its {serving.index_type.name} entry lacks column {each.name}, which only "
                    "Spark reads in this base file"
                )
    return _REASON
