"""Puts the most selective conjunct of an AND first. Later conjuncts are looked up only while that
costs less than reading the remaining rows. For large files, the index itself gives the steps of
each look-up instead, which is more exact than any estimate (`read/row_ids.py`); for small files
that is not worth the cost."""

from dataclasses import replace

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.cost.constants import LARGE_FILE
from hudi_index_service.optimizer.estimates.manifests import estimated_rows
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.predicate.expression import And, Predicate


def most_selective_first(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Orders the conjuncts by the manifest estimates of one slice, if that slice is small."""
    predicate = plan.predicate
    if not isinstance(predicate, And):
        return plan
    typical = next((each for each in plan.slices if each.access is Access.INDEX), None)
    if typical is None or typical.total >= LARGE_FILE:
        return plan
    ordered = tuple(sorted(predicate.operands, key=lambda each: _rows(each, typical)))
    if all(a is b for a, b in zip(ordered, predicate.operands, strict=True)):
        return plan
    return replace(plan, predicate=And(ordered))


def _rows(conjunct: Predicate, slice_plan: SlicePlan) -> float:
    estimate = estimated_rows(slice_plan, conjunct)
    return float("inf") if estimate is None else estimate.expected
