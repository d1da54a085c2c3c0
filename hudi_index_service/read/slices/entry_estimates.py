"""Estimates how many rows match a predicate from the open entries of a slice: closer than from
their manifests alone (`optimizer/estimates.py`), but without looking up rows.

Used by EXPLAIN, and to decide whether to look up rows at all.
"""

from hudi_index_service.errors import EntryUnusable
from hudi_index_service.optimizer.estimates import estimated_rows
from hudi_index_service.optimizer.expected import RowEstimate, all_of, any_of, between
from hudi_index_service.optimizer.grouping import grouped
from hudi_index_service.predicate.evaluate import with_values
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.predicate.fold import fold
from hudi_index_service.read.slices.slice_entries import SliceEntries


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
    estimate = estimated_rows(entries.plan, predicate) or RowEstimate(
        0, entries.total, entries.total
    )
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
