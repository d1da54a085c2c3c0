"""Counts the rows of a slice by the index alone, also per value of a column, or finds that reading
rows is cheaper.

The index alone looks up every conjunct completely. For a range or pattern on text it reads each
matching term, which takes long if another conjunct leaves few rows to read.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from hudi_index_service.errors import EntryUnusable
from hudi_index_service.optimizer.cost.constants import COUNTED_VALUES, Constants
from hudi_index_service.optimizer.decide import rows_pay_for_count
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.predicate.comparison import is_string, value_type
from hudi_index_service.predicate.expression import (
    And,
    Compare,
    Like,
    Operator,
    Or,
    Predicate,
    RLike,
)
from hudi_index_service.read.slices.found_rows import FoundRows
from hudi_index_service.read.slices.reader_pool import ReaderPool
from hudi_index_service.read.slices.slice_entries import SliceEntries, warn_of


def prefer_scan_for_count(
    groups: Sequence[Predicate],
    steps: Callable[[Predicate], int],
    total: int,
    columns: int,
    constants: Constants,
) -> bool:
    """Whether reading the rows of the most selective other conjunct, or all rows without one, is
    cheaper than reading the terms of ranges and patterns on text.

    Args:
        groups: The conjuncts of a predicate, as they are looked up.
        steps: Returns the approximate steps of a look-up.
        total: The number of rows of the base file.
        columns: The number of columns read to check a row.
    """
    if not any(map(_is_list_of_terms, groups)):
        return False
    terms, fewest = 0, total
    for each in groups:
        if _is_list_of_terms(each):
            terms += steps(each)
        elif not isinstance(each, Or):
            fewest = min(fewest, steps(each))
    return rows_pay_for_count(terms, fewest, total, columns, constants)


def has_list_of_terms(predicate: Predicate) -> bool:
    """Whether a part of the predicate is looked up by reading many terms."""
    return any(map(_is_list_of_terms, predicate.leaves()))


def _is_list_of_terms(predicate: Predicate) -> bool:
    match predicate:
        case Compare(column, operator):
            equal = operator in (Operator.EQ, Operator.EQ_NULL_SAFE, Operator.NE)
            return not equal and is_string(value_type(column))
        case Like() | RLike():
            return True
        case And((Compare() | Like() | RLike() as first, *_)):
            return _is_list_of_terms(first)
    return False


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
