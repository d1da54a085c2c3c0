"""Encodes numbers as integers in Spark's order, for indexes and for queries.

Integers, booleans, dates (days), timestamps (their own unit) and decimals (unscaled) map to
themselves. Floating-point numbers map by their bits, after -0.0 is replaced by 0.0 and every NaN by
the same NaN. So NaN equals NaN and is greater than infinity, as in Spark SQL. float32 is widened
first.

The integers have 64 bits. Decimals with more than 18 digits have 128-bit integers, stored as 16
bytes in the same unsigned order: big-endian two's complement with the sign bit flipped.
"""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import (
    as_numbers,
    as_truths,
    float_scalar,
    numbers_array,
    truths_array,
)
from hudi_index_service.index.stored_column import is_wide_number
from hudi_index_service.predicate.expression import Operator

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1
WIDE_MIN = -(2**127)
WIDE_MAX = 2**127 - 1

WIDE_BYTES = 16

_SIGN = np.uint64(1 << 63)
_CANONICAL_NAN = 0x7FF8000000000000
_ZERO = float_scalar(0.0, pa.float64())
_DIGITS = Context(prec=100)  # Python's own default rounds to 28


def encode_array(array: pa.Array) -> pa.Array:
    """The column as an int64 array without offset, NULLs kept."""
    type = array.type
    if pa.types.is_floating(type):
        return _encode_floats(array.cast(pa.float64()))
    if pa.types.is_decimal128(type):
        return _unscaled_decimals(array)
    if pa.types.is_date32(type):
        array = array.cast(pa.int32())
    return array.cast(pa.int64())


def unsigned(encoded: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Encoded numbers as unsigned integers in the same order; INT64_MIN becomes 0."""
    return encoded.view(np.uint64) ^ _SIGN


def _encode_floats(array: pa.Array) -> pa.Array:
    values = as_numbers(pc.fill_null(array, _ZERO))
    bits = (values + 0.0).view(np.int64)  # adding 0.0 turns -0.0 into 0.0
    bits[np.isnan(values)] = _CANONICAL_NAN
    encoded = bits ^ ((bits >> 63) & INT64_MAX)
    return numbers_array(encoded, as_truths(array.is_null()))


def _unscaled_decimals(array: pa.Array) -> pa.Array:
    # A decimal128 is a 128-bit little-endian integer; below 10^18 it fits into the low half.
    if not len(array):  # it may have no buffer at all
        return numbers_array(np.empty(0, dtype=np.int64))
    buffer = array.buffers()[1]
    low = np.frombuffer(buffer, dtype=np.int64)[::2][array.offset : array.offset + len(array)]
    return numbers_array(low, as_truths(array.is_null()))


def encode_wide(array: pa.Array) -> pa.Array:
    """A decimal column as an array of 16-byte values without offset, NULLs kept."""
    if not len(array):  # it may have no buffer at all
        return pa.nulls(0, pa.binary(WIDE_BYTES))
    little_endian = np.frombuffer(array.buffers()[1], dtype=np.uint8).reshape(-1, WIDE_BYTES)
    encoded = little_endian[array.offset : array.offset + len(array), ::-1].copy()
    encoded[:, 0] ^= 0x80
    valid = truths_array(as_truths(array.is_valid()))  # its data are a validity bitmap
    buffers = [valid.buffers()[1], pa.py_buffer(encoded)]
    return pa.Array.from_buffers(pa.binary(WIDE_BYTES), len(array), buffers)


def wide_bytes(value: int) -> bytes:
    """One 128-bit integer, encoded as `encode_wide` does."""
    return (value - WIDE_MIN).to_bytes(WIDE_BYTES, "big")


@dataclass(frozen=True, slots=True)
class NumberRange:
    """Encoded values from `low` to `high`, both included; empty if low > high."""

    low: int
    high: int

    @property
    def is_empty(self) -> bool:
        """Whether no value lies in the range."""
        return self.low > self.high


EMPTY = NumberRange(1, 0)


@lru_cache(maxsize=256)  # statistics, runs, entries and rows compare with the same literals
def encode_range(operator: Operator, value: pa.Scalar, type: pa.DataType) -> NumberRange | None:
    """The encoded values of a column of `type` for which ``column <operator> value`` is TRUE.

    Supports EQ, EQ_NULL_SAFE, LT, LE, GT and GE. The value's numeric type may differ from the
    column's.

    Returns:
        The range; None if the column's encoding cannot express the comparison exactly.
    """
    bounds = _encode_literal(value, type)
    if bounds is None:
        return None
    floor, ceiling = bounds
    least, greatest = (WIDE_MIN, WIDE_MAX) if is_wide_number(type) else (INT64_MIN, INT64_MAX)
    match operator:
        case Operator.EQ | Operator.EQ_NULL_SAFE:
            result = NumberRange(floor, ceiling) if floor == ceiling else EMPTY
        case Operator.LT:
            result = NumberRange(least, ceiling - 1)
        case Operator.LE:
            result = NumberRange(least, floor)
        case Operator.GT:
            result = NumberRange(floor + 1, greatest)
        case Operator.GE:
            result = NumberRange(ceiling, greatest)
        case _:
            return None
    clipped = NumberRange(max(result.low, least), min(result.high, greatest))
    return EMPTY if clipped.is_empty else clipped


def _encode_literal(value: pa.Scalar, type: pa.DataType) -> tuple[int, int] | None:
    """The largest encoded value <= the literal and the smallest >= it, as unbounded integers. They
    differ if the column's type cannot hold the literal."""
    if pa.types.is_floating(type):
        # Spark compares in double as soon as one side is floating point.
        if not pa.types.is_floating(value.type):
            return None
        return _exactly(encode_array(pa.repeat(value, 1))[0].as_py())
    if pa.types.is_boolean(type):
        return _exactly(int(value.as_py())) if pa.types.is_boolean(value.type) else None
    if pa.types.is_date32(type):
        return _exactly(value.value) if pa.types.is_date32(value.type) else None
    if pa.types.is_timestamp(type):
        # Timestamps with and without time zone are not comparable, and units must agree.
        same = value.type == type or (
            pa.types.is_timestamp(value.type)
            and value.type.unit == type.unit
            and (value.type.tz is None) == (type.tz is None)
        )
        return _exactly(value.value) if same else None
    if pa.types.is_signed_integer(value.type) or pa.types.is_decimal128(value.type):
        scale = type.scale if pa.types.is_decimal128(type) else 0
        number = Decimal(value.as_py()).scaleb(scale, _DIGITS)
        return (
            int(number.to_integral_value(ROUND_FLOOR, _DIGITS)),
            int(number.to_integral_value(ROUND_CEILING, _DIGITS)),
        )
    return None


def _exactly(value: int) -> tuple[int, int]:
    return value, value
