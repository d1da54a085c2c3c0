"""Estimates a plan's rows from the index itself, for EXPLAIN and SQL. Opens entries, but no base
file."""

import logging
from dataclasses import replace

from hudi_index_service.errors import EntryUnusable
from hudi_index_service.optimizer.cost.model import CostModel
from hudi_index_service.optimizer.expected import RowEstimate, between
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.read.slices.entry_estimates import row_estimate
from hudi_index_service.read.slices.slice_entries import SliceEntries
from hudi_index_service.read.slices.slice_reader import SliceReader

log = logging.getLogger(__name__)

_MOST_SLICES = 200


def with_index_estimates(plan: QueryPlan, reader: SliceReader) -> QueryPlan:
    """The plan with rows bounded by the entries of its slices, and with the resulting costs. The
    access of each slice does not change. Only the first slices of many are estimated."""
    if plan.predicate is None:
        return plan
    model = CostModel.of(plan, reader.settings)
    slices, estimate_count = [], 0
    for each in plan.slices:
        expected, entries = each.expected, each.known_entries
        readable = each.access in (Access.INDEX, Access.SCAN)
        if expected is not None and entries and readable and estimate_count < _MOST_SLICES:
            estimate_count += 1
            with_entries = each._replace(entries=entries)
            rows = narrowed_rows(with_entries, plan.predicate, expected.rows, reader)
            if rows is not None:
                cost = model.expected(each, rows)
                each = each._replace(expected=cost._replace(guessed=expected.guessed))
        slices.append(each)
    return replace(plan, slices=tuple(slices))


def narrowed_rows(
    plan: SlicePlan, predicate: Predicate, estimate: RowEstimate, reader: SliceReader
) -> RowEstimate | None:
    """A slice's row estimate, narrowed by the bounds of its entries; None if these fail. Both
    bounds are guaranteed, so the narrower ones are, too. The index's own guess is better,
    unless the given estimate was corrected by the query history.

    Args:
        plan: The slice with the entries to use.
    """
    try:
        with SliceEntries.leased(plan, reader.pool) as entries:
            index_estimate = row_estimate(predicate, entries)
    except EntryUnusable as error:
        log.info("The index gives no estimate for %s: %s", plan.file_slice.name, error)
        return None
    least = max(estimate.least, index_estimate.least)
    by_history = plan.expected is not None and plan.expected.guessed is not None
    guess = estimate.expected if by_history else index_estimate.expected
    return between(least, guess, max(least, min(estimate.most, index_estimate.most)))
