"""Of an AND the conjunct that leaves the fewest rows goes first: what follows is looked up only as
long as that takes less than to read the rows that are left. Large files are asked for the steps
that each look-up takes, which is better than any estimate (`read/row_ids.py`); small ones are not
worth asking."""

from dataclasses import replace

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.estimates.manifests import estimated_rows
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.predicate.expression import And, Predicate

LARGE_FILE = 100_000
"""Rows of a base file from which on look-ups are asked what they take."""


def most_selective_first(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Orders the conjuncts by what the manifest of one of the slices says, if that is small."""
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
