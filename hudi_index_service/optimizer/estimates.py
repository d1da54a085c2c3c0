"""Estimates the rows of a predicate in base files from the statistics in their entries' manifests,
without opening an index.

Bounds come from the number of NULLs and the least and greatest value. The guess comes from the
number of distinct values and, for ranges and prefixes, from the position of the literal between the
least and greatest value.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any, TypeAlias

import pyarrow as pa

from hudi_index_service.optimizer.column_values import EQUAL, Values
from hudi_index_service.optimizer.expected import RowEstimate, all_of, any_of, between
from hudi_index_service.optimizer.partitions import PartitionValues
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.optimizer.serving import values_of
from hudi_index_service.predicate.evaluate import with_values
from hudi_index_service.predicate.expression import (
    ArrayContains,
    Compare,
    In,
    IsNull,
    Leaf,
    Like,
    LikePart,
    Match,
    MatchMode,
    Not,
    Operator,
    Predicate,
    RLike,
)
from hudi_index_service.predicate.fold import Condition, fold
from hudi_index_service.predicate.values import bound_of

Known: TypeAlias = Callable[[str], Values | None]
"""Statistics of a column; None if it has none."""

Estimate: TypeAlias = Callable[[Known, int], RowEstimate]
"""Estimates a predicate's rows, given statistics and the number of all rows."""

Part: TypeAlias = Condition | Estimate
"""A condition of a predicate, or the estimate of another part."""

_NOTHING = RowEstimate(0, 0, 0)
_BROKEN = "\ufffd"  # Java's replacement for invalid UTF-8, which is not in the bounds

_UPWARDS = (Operator.GT, Operator.GE)
_RANGES = (*_UPWARDS, Operator.LT, Operator.LE)
_INCLUSIVE = (Operator.GE, Operator.LE)

# Shares of rows without statistics: PostgreSQL's (its `selfuncs.h` and `like_support.c`), where it
# has one.
_RANGE = 1 / 3  # open at one end
_CLOSED_RANGE = 0.005
_NULL = 0.005  # of a column that no entry holds
_CONTAINED = 0.005  # arrays with an element
_MATCH = {
    MatchMode.ALL: 0.01,
    MatchMode.ANY: 0.05,
    MatchMode.PHRASE: 0.005,
    MatchMode.PREFIX: 0.05,
    MatchMode.FUZZY: 0.02,
}
_LEAST = 0.005  # of texts with a pattern, since users mostly search for patterns that occur
_CHARACTER = 0.2  # of the values matching so far that have this character next
_ANY_CHARACTER = 0.9
_ANY_TEXT = 5.0


class ManifestEstimates:
    """Estimates one predicate for many slices. Make it once per query.

    Args:
        predicate: In negation normal form, or a leaf.
        partitions: Values from the paths of the slices' partitions. They only save time if there
            are many partitions, since each slice has its own values.
    """

    def __init__(self, predicate: Predicate, partitions: PartitionValues | None = None) -> None:
        self._predicate = predicate
        self._columns = predicate.columns()
        self._estimate = _compiled(predicate)
        self._by_partition: dict[str, Estimate] = {}
        if partitions is not None and not self._columns.isdisjoint(partitions.table.schema.names):
            within = partitions.within(predicate)
            estimates = {each: _compiled(each) for each in set(within.values())}
            self._by_partition = {name: estimates[each] for name, each in within.items()}

    def rows(self, plan: SlicePlan) -> RowEstimate | None:
        """The matching rows of a slice; None if it has no entry, so that even its number of rows is
        unknown."""
        if plan.access is Access.SKIP:
            return _NOTHING
        entries = plan.known_entries
        if not entries:
            return None
        estimate = self._estimate
        if plan.values and not self._columns.isdisjoint(plan.values):
            estimate = self._in_partition(plan)
        values = entries[0].values if len(entries) == 1 else partial(values_of, entries)
        return estimate(values, entries[0].rows)

    def _in_partition(self, plan: SlicePlan) -> Estimate:
        """Estimates the predicate that remains for the slice."""
        partition = plan.file_slice.partition
        if partition not in self._by_partition:
            remaining = with_values(self._predicate, plan.values)
            self._by_partition[partition] = _compiled(remaining)
        return self._by_partition[partition]


_estimates = lru_cache(maxsize=256)(ManifestEstimates)


def estimated_rows(plan: SlicePlan, predicate: Predicate) -> RowEstimate | None:
    """See `ManifestEstimates`, which is faster for many slices.

    Args:
        predicate: In negation normal form, or a leaf.
    """
    return _estimates(predicate).rows(plan)


def _compiled(predicate: Predicate) -> Estimate:
    return _all_of([fold(predicate, lambda leaf: leaf, _all_of, _any_of)])


def _all_of(parts: Iterable[Part]) -> Estimate:
    value_ranges, others = _ranges(parts)
    estimates = [*value_ranges, *map(_estimate, others)]
    if len(estimates) == 1:
        return estimates[0]
    return lambda statistics, total: all_of([each(statistics, total) for each in estimates], total)


def _any_of(parts: Iterable[Part]) -> Estimate:
    estimates = [_all_of([each]) for each in parts]
    return lambda statistics, total: any_of([each(statistics, total) for each in estimates], total)


def _estimate(part: Part) -> Estimate:
    return part if callable(part) else leaf_rows(part)


# --- leaves ----------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _any_values(total: int) -> Values:
    return Values(0, total, None, None, total * EQUAL, None)


def _values_in(statistics: Known, column: str, total: int) -> Values:
    """The statistics of a column; defaults if it has none."""
    return statistics(column) or _any_values(total)


def leaf_rows(leaf: Predicate) -> Estimate:
    """Estimates a leaf of a predicate in negation normal form."""
    match leaf:
        case IsNull(column):
            return _null_rows(column.name)
        case Not(IsNull() | Compare(operator=Operator.EQ_NULL_SAFE) as operand):
            return _complement(leaf_rows(operand))
        case Not(In(has_null=True)):
            return lambda statistics, total: _NOTHING
        case Not(Leaf(column) as operand):
            return _others(column.name, leaf_rows(operand))
        case Compare(column, Operator.NE, value):
            return _others(column.name, _equal_rows(column.name, 1, _ascending(value)))
        case Compare(column, Operator.EQ | Operator.EQ_NULL_SAFE, value):
            return _equal_rows(column.name, 1, _ascending(value))
        case Compare(column):
            return _some(column.name, _RANGE)
        case In(column, values):
            return _equal_rows(column.name, len(values), leaf.ascending)
        case Like(column):
            return _like_rows(leaf)
        case RLike(column, regex=regex):
            return _some(column.name, max(_CHARACTER ** len(regex.required), _LEAST))
        case Match(column, mode):
            return _some(column.name, _MATCH[mode])
        case ArrayContains(column):
            return _some(column.name, _CONTAINED)
    return lambda statistics, total: RowEstimate(0, total * _RANGE, total)


def _null_rows(column: str) -> Estimate:
    def rows(statistics: Known, total: int) -> RowEstimate:
        values = statistics(column)
        if values is None:
            return RowEstimate(0, total * _NULL, total)
        return RowEstimate(values.nulls, values.nulls, values.nulls)

    return rows


def _complement(estimate: Estimate) -> Estimate:
    """Estimates all other rows."""

    def rows(statistics: Known, total: int) -> RowEstimate:
        matching = estimate(statistics, total)
        return RowEstimate(total - matching.most, total - matching.expected, total - matching.least)

    return rows


def _others(column: str, estimate: Estimate) -> Estimate:
    """Estimates all other rows that have a value."""

    def rows(statistics: Known, total: int) -> RowEstimate:
        count = _values_in(statistics, column, total).count
        matching = estimate(statistics, total)
        least = count - matching.most if statistics(column) else 0
        return RowEstimate(least, count - matching.expected, count - matching.least)

    return rows


def _some(column: str, share: float) -> Estimate:
    """Estimates a fixed share of the rows with a value."""

    def rows(statistics: Known, total: int) -> RowEstimate:
        count = _values_in(statistics, column, total).count
        return RowEstimate(0, count * share, count)

    return rows


def _ascending(value: pa.Scalar) -> list[Any] | None:
    bound = bound_of(value)
    return None if bound is None else [bound]


def _equal_rows(column: str, number: int, ascending: list[Any] | None) -> Estimate:
    """Estimates the rows with one of the values.

    Args:
        number: The number of values.
        ascending: See `In.ascending`.
    """

    def rows(statistics: Known, total: int) -> RowEstimate:
        values = _values_in(statistics, column, total)
        least, count, hits = values.least, values.count, number
        if ascending is not None and least is not None:
            first = bisect_left(ascending, least)
            hits = bisect_right(ascending, values.greatest) - first
            if not hits:
                return _NOTHING
            if least == values.greatest:
                return RowEstimate(count, count, count)
        return between(0, hits * values.equal, count)

    return rows


def _like_rows(like: Like) -> Estimate:
    column, pattern_share = like.column.name, _share_of_like(like.parts)
    try:
        prefix = like.prefix.encode()
    except UnicodeEncodeError:  # half a character
        prefix = b""
    if not prefix or _BROKEN in like.pattern:
        return _some(column, pattern_share)
    if all(part.kind == "text" for part in like.parts):
        return _equal_rows(column, 1, [prefix])
    rest = _share_of_like(like.parts[1:])

    def rows(statistics: Known, total: int) -> RowEstimate:
        values = _values_in(statistics, column, total)
        least, greatest, count = values.least, values.greatest, values.count
        if values.below is None:
            return RowEstimate(0, count * pattern_share, count)
        if not least[: len(prefix)] <= prefix <= greatest:
            return _NOTHING
        if like.is_prefix_only and least.startswith(prefix) and greatest.startswith(prefix):
            return RowEstimate(count, count, count)
        share = (values.below(prefix, True) - values.below(prefix, False)) * rest
        return between(0, max(share * count, min(values.equal, 1.0)), count)

    return rows


def _share_of_like(parts: tuple[LikePart, ...]) -> float:
    """The share of texts that match a LIKE pattern, or the rest of one."""
    share = 1.0
    for number, part in enumerate(parts):
        if part.kind == "text":
            share *= _CHARACTER ** len(part.text)
        elif part.kind == "one":
            share *= _ANY_CHARACTER
        elif number:  # at the beginning it changes nothing
            share *= _ANY_TEXT
    return min(max(share, _LEAST), 1.0)


# --- ranges ----------------------------------------------------------------------------------


_End: TypeAlias = tuple[Any, bool]
"""A value as `bound_of` encodes it, and whether it belongs to the range that it ends."""


def _ranges(operands: Iterable[Part]) -> tuple[list[Estimate], list[Part]]:
    """The estimates of the ranges in some conjuncts, one per column, and the other conjuncts. Where
    an end has several, as in no simplified predicate, the first one counts as such."""
    ends: dict[str, dict[bool, _End]] = {}
    others: list[Part] = []
    for each in operands:
        if isinstance(each, Compare) and each.operator in _RANGES:
            bound, of_column = bound_of(each.value), ends.setdefault(each.column.name, {})
            if bound is not None and (upwards := each.operator in _UPWARDS) not in of_column:
                of_column[upwards] = bound, each.operator in _INCLUSIVE
                continue
        others.append(each)
    found = [_range_rows(name, of.get(True), of.get(False)) for name, of in ends.items() if of]
    return found, others


def _range_rows(column: str, low_end: _End | None, high_end: _End | None) -> Estimate:
    """Estimates the rows whose value lies in a range; None for an open end."""
    low, low_included = low_end or (None, False)
    high, high_included = high_end or (None, False)
    guess = _CLOSED_RANGE if low_end and high_end else _RANGE

    def rows(statistics: Known, total: int) -> RowEstimate:
        values = _values_in(statistics, column, total)
        least, greatest, count = values.least, values.greatest, values.count
        if values.below is None:
            return RowEstimate(0, count * guess, count)
        all_above = low is None or low < least or (low_included and low == least)
        all_below = high is None or high > greatest or (high_included and high == greatest)
        if all_above and all_below:
            return RowEstimate(count, count, count)
        start, stop = 0.0, 1.0
        if not all_above:
            if low > greatest or (low == greatest and not low_included):
                return _NOTHING
            start = values.below(low, not low_included and not isinstance(low, bytes))
        if not all_below:
            if high < least or (high == least and not high_included):
                return _NOTHING
            stop = values.below(high, high_included and not isinstance(high, bytes))
        return between(0, max((stop - start) * count, min(values.equal, 1.0)), count)

    return rows
