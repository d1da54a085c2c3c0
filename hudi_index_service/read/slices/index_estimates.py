"""Estimates how many rows match a predicate from the open entries of slices: closer than from their
manifests alone (`optimizer/estimates.py`), but without looking up rows.

Used by EXPLAIN and SQL, and to decide whether to look up rows at all.
"""

import logging
from dataclasses import replace

from hudi_index_service.errors import EntryUnusable
from hudi_index_service.optimizer.cost.model import CostModel
from hudi_index_service.optimizer.estimates import estimated_rows
from hudi_index_service.optimizer.expected import RowEstimate, all_of, any_of, between
from hudi_index_service.optimizer.grouping import grouped
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.predicate.evaluate import with_values
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.predicate.fold import fold
from hudi_index_service.read.slices.reader_pool import ReaderPool
from hudi_index_service.read.slices.slice_entries import SliceEntries

log = logging.getLogger(__name__)

_MOST_SLICES = 200


def with_index_estimates(plan: QueryPlan, pool: ReaderPool) -> QueryPlan:
    """The plan with rows bounded by the entries of its slices, and with the resulting costs. The
    access of each slice does not change. Only the first slices of many are estimated.

    Args:
        pool: Opens the entries.
    """
    if plan.predicate is None:
        return plan
    model = CostModel.of(plan, pool.settings)
    slices, estimate_count = [], 0
    for each in plan.slices:
        expected, entries = each.expected, each.known_entries
        readable = each.access in (Access.INDEX, Access.SCAN)
        if expected is not None and entries and readable and estimate_count < _MOST_SLICES:
            estimate_count += 1
            with_entries = each._replace(entries=entries)
            rows = narrowed_rows(with_entries, plan.predicate, expected.rows, pool)
            if rows is not None:
                cost = model.expected(each, rows)
                each = each._replace(expected=cost._replace(guessed=expected.guessed))
        slices.append(each)
    return replace(plan, slices=tuple(slices))


def narrowed_rows(
    plan: SlicePlan, predicate: Predicate, estimate: RowEstimate, pool: ReaderPool
) -> RowEstimate | None:
    """A slice's row estimate, narrowed by the bounds of its entries; None if these fail. Both
    bounds are guaranteed, so the narrower ones are, too. The index's own guess is better,
    unless the given estimate was corrected by the query history.

    Args:
        plan: The slice with the entries to use.
    """
    try:
        with SliceEntries.leased(plan, pool) as entries:
            index_estimate = row_estimate(predicate, entries)
    except EntryUnusable as error:
        log.info("The index gives no estimate for %s: %s", plan.file_slice.name, error)
        return None
    least = max(estimate.least, index_estimate.least)
    by_history = plan.expected is not None and plan.expected.guessed is not None
    guess = estimate.expected if by_history else index_estimate.expected
    return between(least, guess, max(least, min(estimate.most, index_estimate.most)))


def row_estimate(predicate: Predicate, entries: SliceEntries) -> RowEstimate:
    """The matching rows of a slice: guaranteed bounds and an expected number.

    Opens the entries that answer parts of the predicate; entries that fail give no bounds. For a
    leaf that no entry answers, the base file's column index is used if it is available locally.

    Args:
        predicate: In negation normal form.
    """
    values = entries.plan.values
    if not predicate.columns().isdisjoint(values):
        predicate = with_values(predicate, values)
    total = entries.total
    return fold(
        grouped(predicate, entries.plan.entries),
        lambda leaf: _lookup_estimate(leaf, entries),
        all_of=lambda parts: all_of(list(parts), total),
        any_of=lambda parts: any_of(list(parts), total),
        together=True,
    )


def _lookup_estimate(predicate: Predicate, entries: SliceEntries) -> RowEstimate:
    """The estimate for a leaf, or for conjuncts that one look-up answers."""
    total = entries.total
    estimate = estimated_rows(entries.plan, predicate) or RowEstimate(0, total, total)
    least, most = _bounds(predicate, entries)
    return between(max(least, estimate.least), estimate.expected, min(most, estimate.most))


def _bounds(predicate: Predicate, entries: SliceEntries) -> tuple[int, int]:
    try:
        bounds = entries.row_bounds(predicate)
        if bounds is None and entries.has_pages_at_hand(predicate):
            rows = entries.pages(predicate).possible
            bounds = None if rows is None else (0, len(rows))
    except (EntryUnusable, FileNotFoundError):  # the slice's reader reports it, or uses another
        bounds = None
    return (0, entries.total) if bounds is None else bounds
