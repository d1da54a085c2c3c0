"""Corrects the expected rows by what past queries of the same shape had, and decides again by cost
(RFC-51: "gradually expand and improve CBO and HBO based on the collected statistical information").

Only rows are corrected, which are counted: times depend on the machine's load, and pages follow
from the rows.
"""

from dataclasses import replace

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.cost.constants import SLIGHT_CORRECTION
from hudi_index_service.optimizer.cost.model import CostModel
from hudi_index_service.optimizer.decide import index_pays
from hudi_index_service.optimizer.expected import Expected, RowEstimate
from hudi_index_service.optimizer.history.history import history_of
from hudi_index_service.optimizer.history.shape import query_shape
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan

_RULE = "corrected_by_history"
_DECIDED_BY_COST = "cheaper_by_cost"


def corrected_by_history(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Corrects the estimate of each slice and repeats the decision by cost. The caller's
    requirements and decisions of other rules are kept."""
    if plan.predicate is None or not plan.table or all(e.expected is None for e in plan.slices):
        return plan
    history = history_of(settings)
    if history is None:
        return plan
    shape = query_shape(plan.predicate)
    correction = history.correction(plan.table, shape)
    if correction is None:
        return replace(plan, shape=shape)
    model = CostModel.of(plan, settings)
    queries = f"according to {correction.queries:.0f} queries of this shape"

    def planned(each: SlicePlan) -> SlicePlan:
        if each.expected is None or not (each.entries or each.rejected_entries):
            return each
        expected = corrected(each, each.expected, correction.rows, model)
        each = each.costing(expected)
        if plan.use_index != "auto":
            return each
        by_index = index_pays(model, each, expected)
        if each.access is Access.INDEX and not by_index:
            return each.declined(f"a scan is cheaper {queries}", _RULE)
        declined = each.access is Access.SCAN and each.rule == _DECIDED_BY_COST
        if declined and each.rejected_entries and by_index:
            return each.with_index(f"the index is worth asking {queries}", _RULE)
        return each

    return replace(plan, shape=shape, slices=tuple(map(planned, plan.slices)))


def corrected(plan: SlicePlan, estimate: Expected, factor: float, model: CostModel) -> Expected:
    """A slice's estimate with its expected rows multiplied, within their guaranteed bounds."""
    rows = estimate.rows
    likely = min(max(rows.expected * factor, rows.least), rows.most)
    if abs(likely - rows.expected) <= SLIGHT_CORRECTION * rows.expected:
        return estimate._replace(guessed=rows.expected)
    new_estimate = model.expected(plan, RowEstimate(rows.least, likely, rows.most))
    return new_estimate._replace(guessed=rows.expected)
