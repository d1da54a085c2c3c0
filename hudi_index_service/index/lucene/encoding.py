"""Numbers as 64-bit integers in Spark's order: what the index stores and what queries ask for.

Integers, booleans, dates (days), timestamps (their own unit) and decimals (unscaled) map to
themselves. Floating point maps by its bits, after -0.0 became 0.0 and every NaN the same NaN, so
that NaN equals NaN and is above infinity, as in Spark SQL. float32 is widened first.
"""

import struct
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import isnan

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.predicate.expression import Operator

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

_CANONICAL_NAN = 0x7FF8000000000000


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


def _encode_floats(array: pa.Array) -> pa.Array:
    values = np.array(pc.fill_null(array, 0.0), dtype=np.float64)
    bits = (values + 0.0).view(np.int64)  # adding 0.0 turns -0.0 into 0.0
    bits[np.isnan(values)] = _CANONICAL_NAN
    ordered = bits ^ ((bits >> 63) & INT64_MAX)
    return pa.array(ordered, mask=np.asarray(array.is_null()))


def _unscaled_decimals(array: pa.Array) -> pa.Array:
    # A decimal128 is a 128-bit little-endian integer; below 10^18 its low half holds it all.
    if not len(array):  # it may have no buffer at all
        return pa.array([], pa.int64())
    buffer = array.buffers()[1]
    low = np.frombuffer(buffer, dtype=np.int64)[::2][array.offset : array.offset + len(array)]
    return pa.array(low, mask=np.asarray(array.is_null()))


def encode_float(value: float) -> int:
    """One double, encoded as `encode_array` does."""
    if isnan(value):
        return _CANONICAL_NAN
    bits: int = struct.unpack("<q", struct.pack("<d", value + 0.0))[0]
    return bits ^ ((bits >> 63) & INT64_MAX)


@dataclass(frozen=True, slots=True)
class Range:
    """Encoded values from `low` to `high`, both included; empty if low > high."""

    low: int
    high: int

    @property
    def is_empty(self) -> bool:
        """Whether no value lies in the range."""
        return self.low > self.high


EMPTY = Range(1, 0)


def encode_range(operator: Operator, value: pa.Scalar, type: pa.DataType) -> Range | None:
    """The encoded values of a column of `type` for which ``column <operator> value`` is TRUE.

    For EQ, EQ_NULL_SAFE, LT, LE, GT, GE; the value may have another numeric type than the column.

    Returns:
        None when the comparison cannot be expressed exactly in the column's encoding.
    """
    bounds = _encode_literal(value, type)
    if bounds is None:
        return None
    floor, ceiling = bounds
    match operator:
        case Operator.EQ | Operator.EQ_NULL_SAFE:
            found = Range(floor, ceiling) if floor == ceiling else EMPTY
        case Operator.LT:
            found = Range(INT64_MIN, ceiling - 1)
        case Operator.LE:
            found = Range(INT64_MIN, floor)
        case Operator.GT:
            found = Range(floor + 1, INT64_MAX)
        case Operator.GE:
            found = Range(ceiling, INT64_MAX)
        case _:
            return None
    clipped = Range(max(found.low, INT64_MIN), min(found.high, INT64_MAX))
    return EMPTY if clipped.is_empty else clipped


def _encode_literal(value: pa.Scalar, type: pa.DataType) -> tuple[int, int] | None:
    """The largest encoded value <= the literal and the smallest >= it, in unbounded integers;
    they differ where the column's type cannot hold the literal."""
    if pa.types.is_floating(type):
        # Spark compares in double as soon as one side is floating point.
        if not pa.types.is_floating(value.type):
            return None
        encoded = encode_float(value.as_py())
        return encoded, encoded
    if pa.types.is_boolean(type):
        return _exactly(int(value.as_py())) if pa.types.is_boolean(value.type) else None
    if pa.types.is_date32(type):
        return _exactly(value.value) if pa.types.is_date32(value.type) else None
    if pa.types.is_timestamp(type):
        # Zone-less and zoned timestamps are different things, and units must agree.
        same = value.type == type or (
            pa.types.is_timestamp(value.type)
            and value.type.unit == type.unit
            and (value.type.tz is None) == (type.tz is None)
        )
        return _exactly(value.value) if same else None
    if pa.types.is_signed_integer(value.type) or pa.types.is_decimal128(value.type):
        scale = type.scale if pa.types.is_decimal128(type) else 0
        number = Decimal(value.as_py()).scaleb(scale)
        return (
            int(number.to_integral_value(ROUND_FLOOR)),
            int(number.to_integral_value(ROUND_CEILING)),
        )
    return None


def _exactly(value: int) -> tuple[int, int]:
    return value, value
