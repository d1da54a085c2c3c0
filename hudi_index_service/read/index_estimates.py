"""What the index itself says of a plan's rows, for EXPLAIN and for SQL: entries are opened, no base
file is."""

import logging
from dataclasses import replace

from hudi_index_service.optimizer.cost.model import CostModel
from hudi_index_service.optimizer.estimates.algebra import between
from hudi_index_service.optimizer.expected import Expected, RowEstimate
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.read.entry_estimates import row_estimate
from hudi_index_service.read.slice_entries import INDEX_FAILURES, SliceEntries
from hudi_index_service.read.slice_reader import SliceReader

log = logging.getLogger(__name__)

_MOST_SLICES = 200


def with_index_estimates(plan: QueryPlan, reader: SliceReader) -> QueryPlan:
    """The plan with rows as the entries of its slices bound them, and costs accordingly. How
    anything is read stays as it was planned. Of many slices only the first are asked."""
    if plan.predicate is None:
        return plan
    model = CostModel.of(plan, reader.settings)
    slices, asked = [], 0
    for each in plan.slices:
        expected, entries = each.expected, each.entries or each.unused
        readable = each.access in (Access.INDEX, Access.SCAN)
        if expected is not None and entries and readable and asked < _MOST_SLICES:
            asked += 1
            asking = replace(each, entries=entries)
            rows = narrowed_rows(asking, plan.predicate, expected.rows, reader)
            if rows is not None:
                each = replace(each, expected=_costing(each, expected, rows, model))
        slices.append(each)
    return replace(plan, slices=tuple(slices))


def narrowed_rows(
    plan: SlicePlan, predicate: Predicate, known: RowEstimate, reader: SliceReader
) -> RowEstimate | None:
    """What is known of a slice's rows, narrowed by what its entries say; None where they cannot be
    asked. Both bounds hold, so the narrower ones do. Of two guesses the index's own is the better
    one, unless the other was corrected by what queries had.

    Args:
        plan: With the entries that are asked.
    """
    try:
        with SliceEntries.leased(plan, reader.pool) as entries:
            found = row_estimate(predicate, entries)
    except INDEX_FAILURES as error:
        log.info("%s cannot be asked for an estimate: %s", plan.file_slice.name, error)
        return None
    least = max(known.least, found.least)
    by_history = plan.expected is not None and plan.expected.before_history is not None
    guess = known.expected if by_history else found.expected
    return between(least, guess, max(least, min(known.most, found.most)))


def _costing(plan: SlicePlan, known: Expected, rows: RowEstimate, model: CostModel) -> Expected:
    expected = model.expected(plan, rows)
    if known.before_history is None:
        return expected
    return known._replace(rows=expected.rows, pages=min(known.pages, max(expected.pages, 1.0)))
