"""Estimates how many rows match a predicate from the open entries of a slice: closer than from
their manifests alone (`optimizer/estimates`), but without looking up rows.

Used by EXPLAIN, and to decide whether to look up rows at all.
"""

from hudi_index_service.errors import EntryUnusable
from hudi_index_service.optimizer.estimates.algebra import all_of, any_of, between, constant
from hudi_index_service.optimizer.estimates.manifests import estimated_rows
from hudi_index_service.optimizer.expected import RowEstimate
from hudi_index_service.predicate.evaluate import with_values
from hudi_index_service.predicate.expression import And, Constant, Not, Or, Predicate
from hudi_index_service.read.row_ids import joined
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
    return _rows(predicate, entries)


def _rows(predicate: Predicate, entries: SliceEntries) -> RowEstimate:
    total = entries.total
    match predicate:
        case Constant(value):
            return constant(value, total)
        case Not(Constant(value)):
            return constant(None if value is None else not value, total)
        case And(operands):
            groups = joined(operands, entries.answers, entries.keys)
            return all_of(
                [
                    _rows(each, entries) if each in operands else _lookup_estimate(each, entries)
                    for each in groups
                ],
                total,
            )
        case Or(operands):
            return any_of([_rows(each, entries) for each in operands], total)
    return _lookup_estimate(predicate, entries)


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
            rows = entries.pages(predicate).rows
            bounds = None if rows is None else (0, len(rows))
    except (EntryUnusable, FileNotFoundError):  # the slice's reader reports it, or uses another
        bounds = None
    return (0, entries.total) if bounds is None else bounds
