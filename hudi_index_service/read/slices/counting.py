"""Counts the rows of a slice per value of a column by the index alone."""

from collections import Counter

from hudi_index_service.errors import EntryUnusable
from hudi_index_service.optimizer.cost.constants import COUNTED_VALUES
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.read.slices.found_rows import FoundRows
from hudi_index_service.read.slices.reader_pool import ReaderPool
from hudi_index_service.read.slices.slice_entries import SliceEntries, warn_of


def may_have_few_values(plan: SlicePlan, column: str) -> bool:
    """Whether a slice's index has few enough values of a text column to count them, by its
    manifest; reads no index bytes."""
    if plan.access is Access.SKIP or column in plan.values:
        return True
    return any(each <= COUNTED_VALUES for each in _distinct(plan, column))


def most_values(plan: SlicePlan, column: str) -> int:
    """The most values of a text column, NULL included, in a slice that has an entry, by its
    manifest."""
    if column in plan.values:
        return 1
    return min((each + 1 for each in _distinct(plan, column)), default=plan.total)


def _distinct(plan: SlicePlan, column: str) -> list[int]:
    entries = plan.for_counting().entries
    columns = (each for entry in entries for each in entry.columns if each.name == column)
    return [each.distinct for each in columns if each.distinct is not None]


def value_counts_of(
    pool: ReaderPool, column: str, found: FoundRows
) -> "Counter[str | None] | None":
    """The number of rows found in a base file per value of a text column; None if the column must
    be read."""
    plan, rows, statistics = found.plan.for_counting(), found.rows, found.statistics
    if not rows:
        return Counter()
    if column in plan.values:
        return Counter({plan.values[column].as_py(): len(rows)})
    try:
        with SliceEntries.leased(plan, pool, statistics) as entries:
            return entries.value_counts(column, rows, COUNTED_VALUES)
    except EntryUnusable as error:
        warn_of(error, f"{plan.file_slice.name}: {column} is read")
        statistics.note = error.message.rstrip(".")
        return None
