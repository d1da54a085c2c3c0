"""Skips base files whose entries' manifests rule the predicate out, by minimum, maximum and NULL
count; of slices with log files, only their log rows are left. Neither the entry nor the base file
is opened."""

from collections.abc import Sequence
from dataclasses import replace

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.estimates.manifests import ManifestEstimates
from hudi_index_service.optimizer.expected import RowEstimate
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan

EXCLUDED = "excluded_by_statistics"
"""The rule's name."""


def exclusion_reason(index_types: Sequence[str]) -> str:
    """Why a slice is skipped by the statistics of its entries of these types."""
    return f"its {' and '.join(index_types)} entry's statistics rule the predicate out"


def excluded_by_statistics(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Skips the slices where no row can match by the statistics of the entries that serve them."""
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
