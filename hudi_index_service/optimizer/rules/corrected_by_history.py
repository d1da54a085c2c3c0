"""What queries of the same shape really had corrects what is expected of this one (RFC-51:
"gradually expand and improve CBO and HBO based on the collected statistical information").

Rows and pages, and so bytes, are counted: they decide by the same measure as the cost alone does.
Milliseconds hang on what else the machine did: they decide in one case only, where queries of the
shape asked the index again and again and scanned after all, and the look-ups took so much that what
they would save the next time is worth less.
"""

from dataclasses import replace

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.cost.model import CostModel
from hudi_index_service.optimizer.expected import Expected, RowEstimate
from hudi_index_service.optimizer.history.history import history_of
from hudi_index_service.optimizer.history.record import Correction, InVain
from hudi_index_service.optimizer.history.shape import query_shape
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan

_RULE = "corrected_by_history"
_DECIDED_BY_COST = "cheaper_by_cost"

_SLIGHT = 0.1  # a correction of rows by less changes nothing

# A slice: less is within what a busy machine does to a query. Of a file that is scanned in less,
# look-ups waste so much on a busy machine alone.
_LEAST_WASTE_MS = 4.0


def corrected_by_history(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Corrects what is expected of each slice, and decides again what the cost has decided. Nothing
    else: what the caller requires, or other rules say, stays as it is."""
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
    may_turn = plan.use_index == "auto"

    def planned(each: SlicePlan) -> SlicePlan:
        if each.expected is None or not (each.entries or each.unused):
            return each
        expected = corrected(each, each.expected, correction, model)
        each = each.costing(expected)
        return _decided(each, expected, correction, model) if may_turn else each

    return replace(plan, shape=shape, slices=tuple(map(planned, plan.slices)))


def _decided(
    plan: SlicePlan, expected: Expected, correction: Correction, model: CostModel
) -> SlicePlan:
    queries = f"by what {correction.queries:.0f} queries of this shape had"
    if plan.access is Access.INDEX:
        if not model.is_worth_asking(plan, expected):
            return plan.declined(f"a scan is cheaper {queries}", _RULE)
        vain = correction.in_vain
        far_fewer_bytes = expected.bytes <= model.scan_fraction * expected.scan_bytes
        is_large = expected.scan_ms >= _LEAST_WASTE_MS
        if vain is not None and is_large and not far_fewer_bytes and _is_waste(vain):
            reason = f"{vain.queries:.0f} queries of this shape asked the index in vain"
            return plan.declined(reason, _RULE)
        return plan
    by_cost = plan.access is Access.SCAN and plan.rule == _DECIDED_BY_COST and plan.unused
    if by_cost and model.is_worth_asking(plan, expected):
        return plan.by_index_after_all(f"the index is worth asking {queries}", _RULE)
    return plan


def _is_waste(vain: InVain) -> bool:
    """Whether asking once more costs more than it may save: a whole scan, if rows are few this
    time. After n queries for which it saved nothing, that is to be expected of one in n + 2
    (Laplace's rule of succession)."""
    waste = vain.asked_ms - vain.scan_ms
    return waste >= _LEAST_WASTE_MS and waste * (vain.queries + 1) > vain.scan_ms


def corrected(
    plan: SlicePlan, guess: Expected, correction: Correction, model: CostModel
) -> Expected:
    """What is expected of a slice by what queries of the shape had: rows within their bounds, which
    hold whatever they had; pages; and what these cost."""
    rows, pages, again = guess.rows, None, guess
    likely = min(max(rows.expected * correction.rows, rows.least), rows.most)
    if correction.pages is not None and guess.pages:
        pages = guess.pages * correction.pages
    if pages is not None or abs(likely - rows.expected) > _SLIGHT * rows.expected:
        again = model.expected(plan, RowEstimate(rows.least, likely, rows.most), pages)
    return Expected(
        again.rows,
        again.pages,
        again.bytes,
        again.index_bytes,
        again.index_ms,
        again.scan_bytes,
        again.scan_ms,
        before_history=guess,
    )
