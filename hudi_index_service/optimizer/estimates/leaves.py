"""Estimates the rows of a predicate's leaf from the manifests' statistics of its column."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa

from hudi_index_service.optimizer.column_values import EQUAL, Values
from hudi_index_service.optimizer.estimates import selectivities
from hudi_index_service.optimizer.estimates.algebra import between
from hudi_index_service.optimizer.expected import RowEstimate
from hudi_index_service.predicate.expression import (
    ArrayContains,
    Compare,
    In,
    IsNull,
    Like,
    Match,
    Not,
    Operator,
    Predicate,
    RLike,
)
from hudi_index_service.predicate.values import bound_of

Known: TypeAlias = Callable[[str], Values | None]
"""Statistics of a column; None if it has none."""

Estimate: TypeAlias = Callable[[Known, int], RowEstimate]
"""Estimates a predicate's rows, given statistics and the number of all rows."""

_BROKEN = "\ufffd"  # Java's replacement for invalid UTF-8, which is not in the bounds


@lru_cache(maxsize=4096)
def _any_values(total: int) -> Values:
    return Values(0, total, None, None, total * EQUAL, None)


def values_in(statistics: Known, column: str, total: int) -> Values:
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
            return lambda statistics, total: RowEstimate(0, 0, 0)
        case Not(ArrayContains(column) as operand):
            return _not_containing(column.name, leaf_rows(operand))
        case Not(In(column) | Like(column) | RLike(column) | Match(column) as operand):
            return _others(column.name, leaf_rows(operand))
        case Compare(column, Operator.NE, value):
            return _others(column.name, _equal_rows(column.name, 1, _ascending(value)))
        case Compare(column, Operator.EQ | Operator.EQ_NULL_SAFE, value):
            return _equal_rows(column.name, 1, _ascending(value))
        case Compare(column):
            return _some(column.name, selectivities.RANGE)
        case In(column, values):
            return _equal_rows(column.name, len(values), leaf.ascending)
        case Like(column):
            return _like_rows(leaf)
        case RLike(column, regex=regex):
            return _some(column.name, selectivities.text(regex.required))
        case Match(column, mode):
            return _some(column.name, selectivities.match(mode))
        case ArrayContains(column):
            return _some(column.name, selectivities.CONTAINED)
    return lambda statistics, total: RowEstimate(0, total * selectivities.RANGE, total)


def _null_rows(column: str) -> Estimate:
    def rows(statistics: Known, total: int) -> RowEstimate:
        values = statistics(column)
        if values is None:
            return RowEstimate(0, total * selectivities.NULL, total)
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
        count, matching = (
            values_in(statistics, column, total).count,
            estimate(statistics, total),
        )
        least = count - matching.most if statistics(column) else 0
        return RowEstimate(least, count - matching.expected, count - matching.least)

    return rows


def _not_containing(column: str, estimate: Estimate) -> Estimate:
    """Estimates the arrays without an element; arrays with a NULL element do not count."""
    others = _others(column, estimate)

    def rows(statistics: Known, total: int) -> RowEstimate:
        other_rows = others(statistics, total)
        return RowEstimate(0, other_rows.expected, other_rows.most)

    return rows


def _some(column: str, share: float) -> Estimate:
    """Estimates a fixed share of the rows with a value."""

    def rows(statistics: Known, total: int) -> RowEstimate:
        count = values_in(statistics, column, total).count
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
    if ascending is None:

        def unordered(statistics: Known, total: int) -> RowEstimate:
            values = values_in(statistics, column, total)
            return between(0, number * values.equal, values.count)

        return unordered

    def rows(statistics: Known, total: int) -> RowEstimate:
        values = values_in(statistics, column, total)
        least, count, hits = values.least, values.count, number
        if least is not None:
            first = bisect_left(ascending, least)
            hits = bisect_right(ascending, values.greatest) - first
            if not hits:
                return RowEstimate(0, 0, 0)
            if least == values.greatest:
                return RowEstimate(count, count, count)
        return between(0, hits * values.equal, count)

    return rows


def _like_rows(like: Like) -> Estimate:
    column, pattern_share = like.column.name, selectivities.like(like.parts)
    try:
        prefix = like.prefix.encode()
    except UnicodeEncodeError:  # half a character
        prefix = b""
    if not prefix or _BROKEN in like.pattern:
        return _some(column, pattern_share)
    if all(part.kind == "text" for part in like.parts):
        return _equal_rows(column, 1, [prefix])
    rest = selectivities.like(like.parts[1:])

    def rows(statistics: Known, total: int) -> RowEstimate:
        values = values_in(statistics, column, total)
        least, greatest, count = values.least, values.greatest, values.count
        if values.below is None:
            return RowEstimate(0, count * pattern_share, count)
        if not least[: len(prefix)] <= prefix <= greatest:
            return RowEstimate(0, 0, 0)
        if like.is_prefix_only and least.startswith(prefix) and greatest.startswith(prefix):
            return RowEstimate(count, count, count)
        share = (values.below(prefix, True) - values.below(prefix, False)) * rest
        return between(0, max(share * count, min(values.equal, 1.0)), count)

    return rows
