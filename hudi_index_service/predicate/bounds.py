"""Decides whether a predicate can be TRUE for any row, from bounds of the column's values.

The answer is no only if that is proved; in doubt, rows may match. Bounds do not cover NaN: it may
be among any values, and in Spark it is above all others, whatever the greatest value is.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudi_index_service.predicate.expression import (
    BoundColumn,
    Compare,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Predicate,
)
from hudi_index_service.predicate.fold import Condition, fold
from hudi_index_service.predicate.values import bound_of, utf8

_NEVER_NAN = (Operator.EQ, Operator.EQ_NULL_SAFE, Operator.LT, Operator.LE)
_BROKEN = "\ufffd"  # Java's replacement for bytes that are not UTF-8; bounds do not cover it


@dataclass(frozen=True, slots=True)
class ValueBounds:
    """Bounds of a column's values in some rows.

    Attributes:
        may_be_null: Whether a value may be NULL.
        may_be_value: Whether a value may be other than NULL.
        may_be_nan: Whether a floating-point value may be NaN.
        least: Lower bound of the values other than NULL and NaN, in the form of `bound_of`; None if
            unknown. It need not be a value itself.
        greatest: Upper bound of the same values.
    """

    may_be_null: bool = True
    may_be_value: bool = True
    least: Any = None
    greatest: Any = None
    may_be_nan: bool = True


UNKNOWN = ValueBounds()


def may_match(predicate: Predicate, bounds: Callable[[BoundColumn], ValueBounds]) -> bool:
    """Whether the predicate may be TRUE in any of the rows.

    Args:
        predicate: In negation normal form.
        bounds: Returns a column's bounds in those rows; `UNKNOWN` if there are none.
    """
    return fold(predicate, lambda leaf: _leaf_may_match(leaf, bounds), all, any)


def _leaf_may_match(leaf: Condition, bounds: Callable[[BoundColumn], ValueBounds]) -> bool:
    match leaf:
        case IsNull(column):
            return bounds(column).may_be_null
        case Not(IsNull(column)):
            return bounds(column).may_be_value
        case Compare(column, operator, value):
            return _may_compare(bounds(column), operator, value)
        case In(column):
            return _may_be_listed(bounds(column), leaf)
        case Like(column):
            return _may_be_like(bounds(column), leaf)
        case Not(In(column) | Like(column)):
            return bounds(column).may_be_value
    return True


def _may_be_listed(bounds: ValueBounds, predicate: In) -> bool:
    if not bounds.may_be_value:
        return False
    ascending = predicate.ascending
    if ascending is None or bounds.least is None or bounds.greatest is None:
        return any(_may_compare(bounds, Operator.EQ, value) for value in predicate.values)
    first = bisect_left(ascending, bounds.least)
    return first < len(ascending) and bool(ascending[first] <= bounds.greatest)


def _may_compare(bounds: ValueBounds, operator: Operator, value: pa.Scalar) -> bool:
    if not bounds.may_be_value:
        return False
    if bounds.may_be_nan and pa.types.is_floating(value.type) and operator not in _NEVER_NAN:
        return True  # a NaN would match
    bound = bound_of(value)
    if bound is None or bounds.least is None or bounds.greatest is None:
        return True
    match operator:
        case Operator.EQ | Operator.EQ_NULL_SAFE:
            return bool(bounds.least <= bound <= bounds.greatest)
        case Operator.NE:
            return not bounds.least == bounds.greatest == bound
        case Operator.LT:
            return bool(bounds.least < bound)
        case Operator.LE:
            return bool(bounds.least <= bound)
        case Operator.GT:
            return bool(bounds.greatest > bound)
        case Operator.GE:
            return bool(bounds.greatest >= bound)


def above_prefix(start: bytes) -> bytes | None:
    """The least byte string above all that begin with `start`; None if there is none."""
    stem = start.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def prefix_of(like: Like) -> bytes | None:
    """The bytes that every match starts with, if bounds of values decide it; None otherwise."""
    return (utf8(like.prefix) or None) if _BROKEN not in like.pattern else None


def _may_be_like(bounds: ValueBounds, like: Like) -> bool:
    if not bounds.may_be_value:
        return False
    prefix = prefix_of(like)
    if prefix is None or bounds.least is None or bounds.greatest is None:
        return True
    return bool(bounds.least[: len(prefix)] <= prefix <= bounds.greatest)
