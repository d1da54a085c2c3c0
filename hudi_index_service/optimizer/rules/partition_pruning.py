"""Skips partitions whose path rules the predicate out, including their log files."""

from dataclasses import replace

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.plan import QueryPlan


def partition_pruning(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Skips the slices of partitions in which no row can match."""
    if plan.partitions is None:
        return plan
    pruned = plan.partitions.ruled_out(plan.predicate)
    if not pruned:
        return plan
    reason = "the partition's path rules the predicate out"
    slices = tuple(
        each.skipped(reason, "partition_pruning") if each.file_slice.partition in pruned else each
        for each in plan.slices
    )
    return replace(plan, slices=slices)
