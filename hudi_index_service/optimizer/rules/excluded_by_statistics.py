"""Base files whose least and greatest values, as their entry's manifest has them, rule the
predicate out: neither entry nor base file is opened."""

from dataclasses import replace

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.plan import Access, QueryPlan, ServingEntry, SlicePlan
from hudi_index_service.predicate.bounds import UNKNOWN, ValueBounds, may_match
from hudi_index_service.predicate.expression import Column, Predicate
from hudi_index_service.predicate.substitute import with_values

_RULE = "excluded_by_statistics"


def excluded_by_statistics(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Skips the slices of which no row can match, by the word of an entry that may serve them."""
    predicate = plan.predicate
    if predicate is None:
        return plan
    columns = predicate.columns()
    by_partition: dict[str, Predicate] = {}

    def planned(each: SlicePlan) -> SlicePlan:
        if each.access is not Access.INDEX:
            return each
        asked = predicate
        if not columns.isdisjoint(each.values):
            partition = each.file_slice.partition
            asked = by_partition.get(partition) or with_values(predicate, each.values)
            by_partition[partition] = asked
        return _planned(each, asked)

    return replace(plan, slices=tuple(map(planned, plan.slices)))


def _planned(slice_plan: SlicePlan, predicate: Predicate) -> SlicePlan:
    for serving in slice_plan.entries:
        if not _may_match(predicate, serving):
            reason = f"its {serving.index_type.name} entry's statistics rule the predicate out"
            return slice_plan.skipped(reason, _RULE)
    return slice_plan


def _may_match(predicate: Predicate, serving: ServingEntry) -> bool:
    served = {column.name for column in serving.columns}

    def bounds(column: Column) -> ValueBounds:
        if column.name not in served:
            return UNKNOWN
        return serving.entry.manifest.bounds(column.name)

    return may_match(predicate, bounds)
