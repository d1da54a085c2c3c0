"""Whether a predicate can be TRUE in some rows of which only bounds are known.

The answer is no only where that is proved; whatever is in doubt may match. What the bounds do not
speak of is everywhere: a NaN, which is above all else in Spark, whatever the greatest value is.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context
from typing import Any

import pyarrow as pa
from pyarrow import lib

from hudi_index_service.predicate.expression import (
    And,
    Column,
    Compare,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    Predicate,
)

_BROKEN = "\ufffd"  # what Java makes of bytes that are no UTF-8: it is not in the bounds
_EXACT = Context(prec=76)

# By number, since every query asks for every literal.
_COUNTED = {lib.Type_DATE32, lib.Type_TIMESTAMP}
_FLOATING = {lib.Type_FLOAT, lib.Type_DOUBLE}
_PLAIN = {
    lib.Type_BOOL,
    lib.Type_INT8,
    lib.Type_INT16,
    lib.Type_INT32,
    lib.Type_INT64,
    lib.Type_BINARY,
}


@dataclass(frozen=True, slots=True)
class ValueBounds:
    """What is known of a column's values in some rows.

    Attributes:
        may_be_null: Whether a value may be NULL.
        may_be_value: Whether a value may be something else.
        may_be_nan: Whether a value of floating point may be NaN.
        least: No value that is neither NULL nor NaN is below it, as `bound_of` writes values; None
            if not known. It need not be a value itself.
        greatest: None is above it.
    """

    may_be_null: bool = True
    may_be_value: bool = True
    least: Any = None
    greatest: Any = None
    may_be_nan: bool = True


UNKNOWN = ValueBounds()


def bound_of(value: pa.Scalar) -> bool | int | float | bytes | None:
    """A value as bounds have it: days and moments as integers, decimals unscaled, text in UTF-8;
    None for types that have no bounds, and for NaN."""
    kind = value.type.id
    if kind in _COUNTED:
        return int(value.value)
    if kind in _PLAIN:
        plain: bool | int | bytes = value.as_py()
        return plain
    if kind == lib.Type_STRING:
        return _utf8(value.as_py())
    if kind in _FLOATING:
        number = float(value.as_py())
        return None if math.isnan(number) else number
    if kind == lib.Type_DECIMAL128:
        return int(value.as_py().scaleb(value.type.scale, _EXACT))
    return None


def may_match(predicate: Predicate, bounds: Callable[[Column], ValueBounds]) -> bool:
    """Whether the predicate may be TRUE in any of the rows.

    Args:
        predicate: In negation normal form.
        bounds: What is known of a column in those rows; `UNKNOWN` if nothing.
    """
    match predicate:
        case Constant(value):
            return value is True
        case And(operands):
            return all(may_match(operand, bounds) for operand in operands)
        case Or(operands):
            return any(may_match(operand, bounds) for operand in operands)
        case IsNull(column):
            return bounds(column).may_be_null
        case Not(IsNull(column)):
            return bounds(column).may_be_value
        case Compare(column, operator, value):
            return _may_compare(bounds(column), operator, value)
        case In(column, values):
            known = bounds(column)
            return any(_may_compare(known, Operator.EQ, value) for value in values)
        case Like(column):
            return _may_be_like(bounds(column), predicate)
        case Not(In(column) | Like(column)):
            return bounds(column).may_be_value
    return True


def _may_compare(known: ValueBounds, operator: Operator, value: pa.Scalar) -> bool:
    if not known.may_be_value:
        return False
    if (
        known.may_be_nan
        and pa.types.is_floating(value.type)
        and operator
        not in (
            Operator.EQ,
            Operator.EQ_NULL_SAFE,
            Operator.LT,
            Operator.LE,
        )
    ):
        return True  # as a NaN would
    bound = bound_of(value)
    if bound is None or known.least is None or known.greatest is None:
        return True
    match operator:
        case Operator.EQ | Operator.EQ_NULL_SAFE:
            return bool(known.least <= bound <= known.greatest)
        case Operator.NE:
            return not known.least == known.greatest == bound
        case Operator.LT:
            return bool(known.least < bound)
        case Operator.LE:
            return bool(known.least <= bound)
        case Operator.GT:
            return bool(known.greatest > bound)
        case Operator.GE:
            return bool(known.greatest >= bound)


def _may_be_like(known: ValueBounds, like: Like) -> bool:
    if not known.may_be_value:
        return False
    prefix = _utf8(like.prefix)
    if not prefix or _BROKEN in like.pattern or known.least is None or known.greatest is None:
        return True
    return bool(known.least[: len(prefix)] <= prefix <= known.greatest)


def _utf8(text: str) -> bytes | None:
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a character
        return None
