"""A literal in the form in which bounds of values compare."""

import math
from decimal import Context

import pyarrow as pa
from pyarrow import lib

_EXACT = Context(prec=76)

# By number, which is fast: called for every literal of every query.
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


def bound_of(value: pa.Scalar) -> bool | int | float | bytes | None:
    """A value in the form of bounds: dates and timestamps as integers, decimals unscaled, text in
    UTF-8; None for NaN and for types without bounds."""
    kind = value.type.id
    if kind in _COUNTED:
        return int(value.value)
    if kind in _PLAIN:
        plain: bool | int | bytes = value.as_py()
        return plain
    if kind == lib.Type_STRING:
        return utf8(value.as_py())
    if kind in _FLOATING:
        number = float(value.as_py())
        return None if math.isnan(number) else number
    if kind == lib.Type_DECIMAL128:
        return int(value.as_py().scaleb(value.type.scale, _EXACT))
    return None


def utf8(text: str) -> bytes | None:
    """The text in UTF-8; None if it has a lone surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return None
