"""How many rows of a slice have each value of a column, by the index alone."""

from collections import Counter

from pyroaring import BitMap

from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.read.reader_pool import ReaderPool
from hudi_index_service.read.slice_entries import INDEX_FAILURES, SliceEntries, warn_of
from hudi_index_service.read.statistics import SliceStatistics

MOST_VALUES = 5_000
"""Of a base file; to go through more takes longer than to read the column."""


def may_have_few_values(plan: SlicePlan, column: str) -> bool:
    """Whether a slice's index, by its manifest, has few enough values of a text column to be gone
    through; touches no index bytes."""
    if plan.access is Access.SKIP or column in plan.values:
        return True
    plan = plan.for_counting()
    known = (
        each.statistics for entry in plan.entries for each in entry.columns if each.name == column
    )
    return any(each.distinct is not None and each.distinct <= MOST_VALUES for each in known)


def counted_values(
    pool: ReaderPool,
    plan: SlicePlan,
    column: str,
    rows: BitMap,
    statistics: SliceStatistics,
) -> "Counter[str | None] | None":
    """The rows by their value in a text column; None where the column has to be read."""
    if not rows:
        return Counter()
    if column in plan.values:
        return Counter({plan.values[column].as_py(): len(rows)})
    plan = plan.for_counting()
    try:
        with SliceEntries.leased(plan, pool, statistics) as entries:
            return entries.value_counts(column, rows, MOST_VALUES)
    except INDEX_FAILURES as error:
        warn_of(error, f"Of {plan.file_slice.name}, {column} is read")
        statistics.note = error.message.rstrip(".")
        return None
