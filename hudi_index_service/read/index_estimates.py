"""What the index itself says of a plan's rows, for EXPLAIN: entries are opened, no base file is."""

import logging
from dataclasses import replace

from hudi_index_service.optimizer.cost.model import CostModel
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
            found = _rows(replace(each, entries=entries), plan.predicate, reader)
            if found is not None:
                each = replace(each, expected=_narrowed(each, expected, found, model))
        slices.append(each)
    return replace(plan, slices=tuple(slices))


def _rows(plan: SlicePlan, predicate: Predicate, reader: SliceReader) -> RowEstimate | None:
    try:
        with SliceEntries.leased(plan, reader.pool) as entries:
            return row_estimate(predicate, entries)
    except INDEX_FAILURES as error:
        log.info("%s cannot be asked for an estimate: %s", plan.file_slice.name, error)
        return None


def _narrowed(plan: SlicePlan, known: Expected, found: RowEstimate, model: CostModel) -> Expected:
    """Both bounds hold, so the narrower ones do. Of two guesses the index's own is the better one,
    unless it was corrected by what queries had."""
    least = max(known.rows.least, found.least)
    most = max(least, min(known.rows.most, found.most))
    guess = known.rows if known.before_history is not None else found
    expected = model.expected(plan, RowEstimate(least, min(max(guess.expected, least), most), most))
    if known.before_history is None:
        return expected
    return replace(known, rows=expected.rows, pages=min(known.pages, max(expected.pages, 1.0)))
