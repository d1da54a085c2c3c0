"""Locates a literal among the values of a column, in Spark's comparison type."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from hudi_index_service.arrow import integer_scalar, scalar
from hudi_index_service.errors import PredicateInvalid, PredicateUnsupported
from hudi_index_service.predicate.cast import TIMESTAMP, TIMESTAMP_NTZ, cast, fits, single
from hudi_index_service.predicate.expression import BoundColumn, Operator
from hudi_index_service.predicate.values import DAY_MICROS

MAX_PRECISION = 38

End: TypeAlias = pa.Scalar | None
Ends: TypeAlias = tuple[End, End]

_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}  # DecimalType.forType
_UNIT_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal of the where text.

    Attributes:
        value: A scalar of its Spark type, of type null for a bare NULL.
        text: Its text in the where text.
        plain: Whether it is not made by CAST: Spark takes some shortcuts only with plain literals.
    """

    value: pa.Scalar
    text: str
    plain: bool = True

    @property
    def is_null(self) -> bool:
        """Whether it is NULL, typed or not."""
        return not self.value.is_valid


def value_type(column: BoundColumn) -> pa.DataType:
    """The type of the column's values, without the dictionary encoding."""
    if pa.types.is_dictionary(column.type):
        return column.type.value_type
    return column.type


def is_number(kind: pa.DataType) -> bool:
    """Whether Spark's type for the Arrow type is numeric."""
    return bool(
        pa.types.is_signed_integer(kind)
        or pa.types.is_float32(kind)
        or pa.types.is_float64(kind)
        or pa.types.is_decimal128(kind)
    )


def is_string(kind: pa.DataType) -> bool:
    """Whether it is one of Arrow's string types."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_binary(kind: pa.DataType) -> bool:
    """Whether it is one of Arrow's binary types of any length."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def sort_key(value: pa.Scalar) -> tuple[bool, Any]:
    """A key that orders and identifies values of one type: -0.0 is 0.0, NaN equals itself and is
    above all others."""
    if pa.types.is_date32(value.type) or pa.types.is_timestamp(value.type):
        return False, value.value
    plain = value.as_py()
    return (True, None) if plain != plain else (False, plain)


def comparison_type(
    column: BoundColumn, literals: Sequence[Literal], operator: Operator | None
) -> str:
    """How numbers compare: ``exact``, or rounded to ``double`` or ``float``; all other types
    compare ``exact``. `operator` is None for IN.

    Sources: TypeCoercion, DecimalPrecision of Spark 3.5.
    """
    kind = value_type(column)
    if not is_number(kind):
        return "exact"
    # `ends` refuses literals that a number cannot be compared with.
    literals = [literal for literal in literals if is_number(literal.value.type)]
    types = [kind, *(literal.value.type for literal in literals)]
    if any(pa.types.is_floating(t) for t in types):
        wide = any(pa.types.is_decimal(t) or pa.types.is_float64(t) for t in types)
        return "double" if wide else "float"
    if any(pa.types.is_decimal(t) for t in types):
        ranges = operator in (Operator.LT, Operator.LE, Operator.GT, Operator.GE)
        if ranges and pa.types.is_integer(kind) and literals[0].plain:
            return "exact"  # Spark rewrites these to the integer type, as is done here.
        _require_common_decimal(column, literals, minimal=operator is not None)
    return "exact"


def _require_common_decimal(
    column: BoundColumn, literals: Sequence[Literal], *, minimal: bool
) -> None:
    """Refuses comparisons that need more digits than a decimal has: Spark then rounds, or yields
    NULL."""
    digits, scale = _digits(value_type(column))
    for literal in literals:
        if minimal and literal.plain and pa.types.is_integer(literal.value.type):
            literal_digits = (len(str(abs(literal.value.as_py()))), 0)
        else:
            literal_digits = _digits(literal.value.type)
        digits, scale = max(digits, literal_digits[0]), max(scale, literal_digits[1])
    if digits + scale > MAX_PRECISION:
        raise PredicateUnsupported(
            f"Comparing {column} ({value_type(column)}) with {literals[0].text} needs "
            f"{digits + scale} digits; a decimal has {MAX_PRECISION}.",
            remedy="Write the literal with no more decimals than the column has.",
        )


def _digits(kind: pa.DataType) -> tuple[int, int]:
    """Digits before and after the point of a number type as a decimal."""
    if pa.types.is_decimal(kind):
        return kind.precision - kind.scale, kind.scale
    return _INTEGER_DIGITS[kind.bit_width], 0


def ends(column: BoundColumn, literal: Literal, comparison: str, zone: tzinfo) -> Ends:
    """The smallest value of the column's type that is not below the literal, and the largest that
    is not above it, compared by `comparison` (see `comparison_type`); None if there is none.

    Raises:
        PredicateInvalid: Spark cannot compare the two types.
        PredicateUnsupported: Spark can, but not by the column's own order.
    """
    kind, value = value_type(column), literal.value
    literal_type = value.type
    if comparison == "exact" and pa.types.is_integer(kind) and pa.types.is_integer(literal_type):
        plain = value.as_py()
        if fits(plain, kind):  # most values of long lists do
            same = value if literal_type == kind else integer_scalar(plain, kind)
            return same, same
    if is_number(kind) and is_number(literal_type):
        if pa.types.is_floating(kind):
            return _floating_ends(kind, _comparison_value(value, comparison))
        return _stepped_ends(kind, _comparison_value(value, comparison), comparison)
    if (is_string(kind) and is_string(literal_type)) or (
        is_binary(kind) and is_binary(literal_type)
    ):
        same = value if literal_type == kind else value.cast(kind)
        return same, same
    if literal_type == kind and (pa.types.is_boolean(kind) or pa.types.is_date32(kind)):
        return value, value
    if pa.types.is_timestamp(kind) and kind.unit in _UNIT_MICROS:
        micros = _micros(literal, kind, zone)
        if micros is not None:
            return _multiples(kind, micros, _UNIT_MICROS[kind.unit])
    if (
        pa.types.is_date32(kind)
        and pa.types.is_timestamp(literal_type)
        and (literal_type.tz is None or zone is UTC)
    ):
        return _multiples(kind, value.value, DAY_MICROS)
    raise _refusal(column, literal)


def _comparison_value(value: pa.Scalar, comparison: str) -> Fraction | float:
    """A number in the comparison type."""
    plain = value.as_py()
    if comparison == "exact":
        return Fraction(plain)
    if comparison == "float" and isinstance(plain, int):
        return single(plain)
    return float(plain)


def _floating_ends(kind: pa.DataType, number: Fraction | float) -> Ends:
    value = float(number)
    if pa.types.is_float64(kind) or math.isnan(value):
        same = scalar(value, kind)
        return same, same
    with np.errstate(over="ignore"):
        near = np.float32(value)
    low = near if float(near) >= value else np.nextafter(near, np.float32(np.inf))
    high = near if float(near) <= value else np.nextafter(near, np.float32(-np.inf))
    return scalar(low, kind), scalar(high, kind)


def _stepped_ends(kind: pa.DataType, number: Fraction | float, comparison: str) -> Ends:
    """The ends among integers, or decimals as their unscaled integers."""
    if pa.types.is_decimal(kind):
        scale = kind.scale
        largest = 10**kind.precision - 1
        smallest = -largest
    else:
        scale = 0
        largest = (1 << (kind.bit_width - 1)) - 1
        smallest = -largest - 1
    if isinstance(number, Fraction):
        low, high = math.ceil(number * 10**scale), math.floor(number * 10**scale)
    else:
        # Int / int is rounded once, like BigDecimal.doubleValue.
        value_of = single if comparison == "float" else lambda step: step / 10**scale
        low = _first(smallest, largest + 1, lambda step: value_of(step) >= number)
        high = _first(smallest, largest + 1, lambda step: value_of(step) > number) - 1
        if math.isnan(number):
            low, high = largest + 1, largest  # NaN is above all numbers.
    return (
        _step(kind, max(low, smallest), scale) if low <= largest else None,
        _step(kind, min(high, largest), scale) if high >= smallest else None,
    )


def _first(start: int, stop: int, holds: Callable[[int], bool]) -> int:
    """The first integer of [start, stop) from which `holds` is true; `stop` if it never is."""
    while start < stop:
        middle = (start + stop) // 2
        if holds(middle):
            stop = middle
        else:
            start = middle + 1
    return start


def _step(kind: pa.DataType, step: int, scale: int) -> pa.Scalar:
    if pa.types.is_decimal(kind):
        return scalar(Decimal(step).scaleb(-scale, Context(prec=MAX_PRECISION)), kind)
    return scalar(step, kind)


def _multiples(kind: pa.DataType, micros: int, unit: int) -> Ends:
    """The ends among timestamps that are whole multiples of `unit` microseconds."""
    return scalar(-(-micros // unit), kind), scalar(micros // unit, kind)


def _micros(literal: Literal, kind: pa.DataType, zone: tzinfo) -> int | None:
    """A date or timestamp as microseconds of a timestamp column; None for every other literal."""
    value, literal_type = literal.value, literal.value.type
    if pa.types.is_timestamp(literal_type) and literal_type.tz is not None and kind.tz is None:
        # Spark casts the column to an instant in the session's zone.
        return int(value.value) if zone is UTC else None
    if pa.types.is_timestamp(literal_type) or pa.types.is_date32(literal_type):
        return int(cast(value, TIMESTAMP_NTZ if kind.tz is None else TIMESTAMP, zone).value)
    return None


def _refusal(column: BoundColumn, literal: Literal) -> PredicateInvalid | PredicateUnsupported:
    kind, literal_type = value_type(column), literal.value.type
    comparison = f"{column} ({kind}) with {literal.text}"
    if is_string(kind):
        return PredicateUnsupported(
            f"Spark compares {comparison} by casting every value of the column.",
            remedy="Quote the literal to compare as strings.",
        )
    remedy = f"Write a literal of the column's own type, {kind}."
    moments = pa.types.is_temporal(kind) and pa.types.is_temporal(literal_type)
    if pa.types.is_boolean(kind):
        remedy = "Write TRUE or FALSE."
    elif is_number(kind) and pa.types.is_boolean(literal_type):
        remedy = "Write 1 for TRUE, 0 for FALSE."
    elif pa.types.is_nested(kind):
        remedy = (
            "Use array_contains for an array, a field's own name for a struct, and IS NULL "
            "or IS NOT NULL for both."
        )
    elif (is_number(kind) or pa.types.is_temporal(kind)) and not (
        moments or is_string(literal_type)
    ):
        return PredicateInvalid(f"Spark cannot compare {comparison}.", remedy=remedy)
    return PredicateUnsupported(f"Comparing {comparison} is not supported.", remedy=remedy)
