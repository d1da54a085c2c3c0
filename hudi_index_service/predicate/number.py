"""Spark's numeric literals: ``1``, ``1L``, ``1S``, ``1Y``, ``1.5``, ``1e3``, ``1D``, ``1F``."""

import math
import re
from decimal import Context, Decimal

import pyarrow as pa

from hudi_index_service.errors import PredicateInvalid
from hudi_index_service.predicate.cast import fits
from hudi_index_service.predicate.comparison import MAX_PRECISION

_NUMBER = re.compile(r"(-?)(([0-9.]+)(?:[eE][+-]?[0-9]+)?)([A-Za-z]*)")
_INTEGERS = {"Y": pa.int8(), "S": pa.int16(), "L": pa.int64()}


def number_literal(text: str) -> pa.Scalar:
    """The value of a number token, with its sign before it, in the type Spark gives it.

    Raises:
        PredicateInvalid: the number does not fit its type.
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise _invalid(text, "is not a number")
    sign, digits, mantissa, suffix = match.groups()
    suffix = suffix.upper()
    number = sign + digits
    whole = digits == mantissa and "." not in digits
    if suffix in _INTEGERS:
        if not whole or not fits(int(number), _INTEGERS[suffix]):
            raise _invalid(text, f"does not fit {_INTEGERS[suffix]}")
        return pa.scalar(int(number), _INTEGERS[suffix])
    if suffix == "F":
        return _floating(text, number, pa.float32())
    if suffix == "D" or (suffix == "" and digits != mantissa):
        return _floating(text, number, pa.float64())
    if suffix == "" and whole:
        for kind in (pa.int32(), pa.int64()):
            if fits(int(number), kind):
                return pa.scalar(int(number), kind)
    return _decimal(text, Decimal(number))


def _floating(text: str, number: str, kind: pa.DataType) -> pa.Scalar:
    value = pa.scalar(number).cast(kind)
    if math.isinf(value.as_py()):
        raise _invalid(text, f"does not fit {kind}")
    return value


def _decimal(text: str, number: Decimal) -> pa.Scalar:
    digits, exponent = number.as_tuple().digits, int(number.as_tuple().exponent)
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale)
    if precision > MAX_PRECISION:
        raise _invalid(text, f"has more than {MAX_PRECISION} digits")
    exact = number.quantize(Decimal(1).scaleb(-scale), context=Context(prec=MAX_PRECISION + 1))
    return pa.scalar(exact, pa.decimal128(precision, scale))


def _invalid(text: str, what: str) -> PredicateInvalid:
    return PredicateInvalid(
        f"The number {text} {what}.", remedy="Write a number that fits, or use another suffix."
    )
