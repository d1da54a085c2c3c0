"""What reading each slice costs through its index and by a scan, by the statistics in the manifests
(CBO). Where a scan is clearly cheaper, nothing is opened; where the rest is as good, of several
index types the one that answers sooner is asked first. All is weighed again while reading, once the
rows are known (`optimizer/access.py`)."""

from dataclasses import replace

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.cost.model import CostModel
from hudi_index_service.optimizer.expected import RowEstimate
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan

# Without numbers, which stand in what is expected: EXPLAIN counts slices by their reason.
_REASON, _RULE = "a scan is cheaper than to read so many rows through the index", "cheaper_by_cost"


def cheaper_by_cost(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Says what is expected of every slice that has an entry, and scans where that is cheaper; not
    where the index is required."""
    if plan.predicate is None or not plan.estimated:
        return plan
    model = CostModel.of(plan, settings)
    required = plan.use_index == "require"

    def planned(each: SlicePlan, rows: RowEstimate | None) -> SlicePlan:
        if each.access is not Access.INDEX or rows is None:
            return each
        if len(each.entries) > 1:
            # Sorting is stable: among equals the order stays.
            each = replace(each, entries=tuple(sorted(each.entries, key=model.asking_ms)))
        expected = model.expected(each, rows)
        if required or model.is_worth_asking(each, expected):
            return each.costing(expected)
        return each.declined(_REASON, _RULE, expected)

    both = zip(plan.slices, plan.estimated, strict=True)
    return replace(plan, slices=tuple(planned(each, rows) for each, rows in both))
