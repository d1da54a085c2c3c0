"""Compares the cost of reading each slice through its index with that of a scan, from the
statistics in the manifests (CBO). Where a scan is clearly cheaper, nothing is opened. Of several
index types that answer equally well, the fastest is tried first. The costs are compared again while
reading, once the rows are known (`optimizer/decide.py`)."""

from dataclasses import replace

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.cost.model import CostModel
from hudi_index_service.optimizer.decide import index_pays
from hudi_index_service.optimizer.expected import RowEstimate
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan

# Without numbers, which are in `expected`, since EXPLAIN counts slices by their reason.
_REASON, _RULE = "a scan is cheaper than reading these rows through the index", "cheaper_by_cost"


def cheaper_by_cost(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Estimates the cost of every slice that has an entry, and scans where that is cheaper, unless
    the index is required."""
    if plan.predicate is None or not plan.uses_index:
        return plan
    model = CostModel.of(plan, settings)
    required = plan.use_index == "require"

    def planned(each: SlicePlan, rows: RowEstimate | None) -> SlicePlan:
        if each.access is not Access.INDEX or rows is None:
            return each
        if len(each.entries) > 1:
            # Sorting is stable: equals keep their order.
            each = replace(each, entries=tuple(sorted(each.entries, key=model.first_result_ms)))
        expected = model.expected(each, rows)
        if required or index_pays(model, each, expected):
            return each.costing(expected)
        return each.declined(_REASON, _RULE, expected)

    both = zip(plan.slices, plan.estimated, strict=True)
    return replace(plan, slices=tuple(planned(each, rows) for each, rows in both))
