"""Spark's numeric literals: ``1``, ``1L``, ``1S``, ``1Y``, ``1.5``, ``1e3``, ``1D``, ``1F``."""

import math
import re
from decimal import Context, Decimal

import pyarrow as pa

from hudi_index_service.arrow import integer_scalar, scalar, text_scalar
from hudi_index_service.errors import PredicateInvalid
from hudi_index_service.predicate.cast import fits, fits_exponent, integer
from hudi_index_service.predicate.comparison import MAX_PRECISION
from hudi_index_service.predicate.text.lex import shortened

_NUMBER = re.compile(r"(-?)(([0-9.]+)(?:[eE]([+-]?[0-9]+))?)([A-Za-z]*)")
_INTEGERS = {"Y": pa.int8(), "S": pa.int16(), "L": pa.int64()}


def number_literal(text: str) -> pa.Scalar:
    """The value of a number token, with its sign, in Spark's type.

    Raises:
        PredicateInvalid: the number does not fit its type.
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise _invalid(text, "is not a number")
    sign, digits, mantissa, exponent, suffix = match.groups()
    suffix = suffix.upper()
    number = sign + digits
    integer_value = integer(number) if digits == mantissa and "." not in digits else None
    if exponent is not None and not fits_exponent(exponent):
        raise _invalid(text, "has an exponent of more than 32 bits")
    if suffix in _INTEGERS:
        if integer_value is None or not fits(integer_value, _INTEGERS[suffix]):
            raise _invalid(text, f"does not fit {_INTEGERS[suffix]}")
        return integer_scalar(integer_value, _INTEGERS[suffix])
    if suffix == "F":
        return _floating(text, number, pa.float32())
    if suffix == "D" or (suffix == "" and digits != mantissa):
        return _floating(text, number, pa.float64())
    if suffix == "" and integer_value is not None:
        for kind in (pa.int32(), pa.int64()):
            if fits(integer_value, kind):
                return integer_scalar(integer_value, kind)
    if len(mantissa.replace(".", "").lstrip("0")) > MAX_PRECISION:  # before all digits are read
        raise _too_long(text)
    return _decimal(text, Decimal(number))


def _floating(text: str, number: str, kind: pa.DataType) -> pa.Scalar:
    value = text_scalar(number).cast(kind)
    if math.isinf(value.as_py()):
        raise _invalid(text, f"does not fit {kind}")
    return value


def _decimal(text: str, number: Decimal) -> pa.Scalar:
    digits, exponent = number.as_tuple().digits, int(number.as_tuple().exponent)
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale)
    if precision > MAX_PRECISION:
        raise _too_long(text)
    exact = number.quantize(Decimal(1).scaleb(-scale), context=Context(prec=MAX_PRECISION + 1))
    return scalar(exact, pa.decimal128(precision, scale))


def _too_long(text: str) -> PredicateInvalid:
    return _invalid(text, f"has more than {MAX_PRECISION} digits")


def _invalid(text: str, problem: str) -> PredicateInvalid:
    return PredicateInvalid(
        f"The number {shortened(text)} {problem}.",
        remedy="Write a number that fits, or use another suffix.",
    )
