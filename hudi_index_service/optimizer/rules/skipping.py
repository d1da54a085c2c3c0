"""Rules that skip slices without opening an entry or a base file: for what the predicate says, for
a partition's path, or for the minimum, maximum and NULL count in the manifests of entries."""

from collections.abc import Sequence
from dataclasses import replace

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.estimates.manifests import ManifestEstimates
from hudi_index_service.optimizer.expected import RowEstimate
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.predicate.expression import Constant
from hudi_index_service.predicate.simplify import simplified

EXCLUDED = "excluded_by_statistics"
"""The name of the rule `excluded_by_statistics`."""


def implied_predicates(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Replaces the predicate by a shorter one that is TRUE for the same rows: drops conjuncts that
    others imply, and merges overlapping ranges (see `hudi_index_service.predicate.simplify`). The
    residual on the rows read is the predicate as written."""
    if plan.predicate is None or not plan.predicate.children:
        return plan
    shorter = simplified(plan.predicate)
    return plan if shorter is plan.predicate else replace(plan, predicate=shorter)


def contradiction(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Skips every slice, even with log files, if the predicate is never TRUE, as written or as
    simplified by `implied_predicates`."""
    if not isinstance(plan.predicate, Constant) or plan.predicate.value is True:
        return plan
    reason = "the predicate is TRUE for no row"
    return replace(
        plan, slices=tuple(each.skipped(reason, "contradiction") for each in plan.slices)
    )


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


def exclusion_reason(index_types: Sequence[str]) -> str:
    """Why a slice is skipped by the statistics of its entries of these types."""
    return f"its {' and '.join(index_types)} entry's statistics rule the predicate out"


def excluded_by_statistics(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Skips the slices where no row can match by the statistics of the entries that serve them; of
    slices with log files, only their log rows are left."""
    if plan.predicate is None or not plan.uses_index:
        return plan
    estimates = ManifestEstimates(plan.predicate, plan.partitions)
    row_estimates = tuple(
        [estimates.rows(each) if each.access is Access.INDEX else None for each in plan.slices]
    )
    slices = plan.slices
    if any(rows is not None and not rows.most for rows in row_estimates):
        slices = tuple(
            _planned(each, rows) for each, rows in zip(slices, row_estimates, strict=True)
        )
    return replace(plan, slices=slices, estimated=row_estimates)


def _planned(slice_plan: SlicePlan, rows: RowEstimate | None) -> SlicePlan:
    if rows is None or rows.most:
        return slice_plan
    names = [entry.index_type.name for entry in slice_plan.entries]
    return slice_plan.without_base_rows(exclusion_reason(names), EXCLUDED)
