"""Conversions between Arrow, numpy and Python of the usual kinds of values, without pandas.

Where pandas is installed, pyarrow's own conversions import it (`scalar`, `array`, `to_numpy`, and
functions of `pyarrow.compute` that are given a Python value), if only to find out that a value is
none of its. That takes a quarter of a second of a process's first query, and fails if two threads
do it at once. So elsewhere `array` and `scalar` are not called, which the linter checks.
"""

import sys
from collections.abc import Sequence
from contextvars import ContextVar
from decimal import Context, Decimal
from struct import Struct
from threading import Lock
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_DIGITS = Context(prec=100)

_MOST_BYTES = 2**31 - 1
"""Of the values of an array with offsets of 32 bits."""

_ENDS, _LARGE_ENDS = Struct("=ii"), Struct("=qq")
"""The offsets of one value."""

_with_pandas = Lock()
"""Held where pyarrow may import pandas, which two threads cannot do at once."""


def numbers_array(
    values: npt.NDArray[Any], is_null: npt.NDArray[np.bool_] | None = None
) -> pa.Array:
    """Numbers, without a copy if they are contiguous; NULL where the mask says so."""
    buffers = [_validity(is_null), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


def integers_array(values: Sequence[int | None], kind: pa.DataType) -> pa.Array:
    """Integers that fit a signed integer type; NULL for None."""
    numbers = np.array([value or 0 for value in values], dtype=kind.to_pandas_dtype())
    return numbers_array(numbers, _is_none(values))


def texts_array(texts: Sequence[str | None], kind: pa.DataType) -> pa.Array:
    """Texts as ``string`` or ``large_string``; NULL for None.

    Raises:
        pa.ArrowInvalid: a ``string`` array would hold 2 GiB or more.
    """
    is_none = _is_none(texts)
    present = cast(Sequence[str], texts) if is_none is None else [text or "" for text in texts]
    joined = "".join(present)
    if joined.isascii():
        return _variable_width(present, joined.encode(), kind, is_none)
    return _bytes_array([text.encode() for text in present], kind, is_none)


def binary_array(values: Sequence[bytes], kind: pa.DataType | None = None) -> pa.Array:
    """Bytes, by default as ``binary``.

    Args:
        kind: ``binary``, ``large_binary`` or ``fixed_size_binary``.

    Raises:
        pa.ArrowInvalid: a ``binary`` array would hold 2 GiB or more; or values are not of the fixed
            size.
    """
    return _bytes_array(values, kind or pa.binary(), None)


def utf8_array(texts: Sequence[bytes | None]) -> pa.StringArray:
    """Texts as ``string`` from their bytes, which need not be UTF-8, as in Spark; NULL for None.

    Raises:
        pa.ArrowInvalid: they are 2 GiB or more.
    """
    return _bytes_array([text or b"" for text in texts], pa.string(), _is_none(texts))


def _bytes_array(
    values: Sequence[bytes], kind: pa.DataType, is_null: npt.NDArray[np.bool_] | None
) -> pa.Array:
    data = b"".join(values)
    if not pa.types.is_fixed_size_binary(kind):
        return _variable_width(values, data, kind, is_null)
    if any(len(value) != kind.byte_width for value in values):
        raise pa.ArrowInvalid(f"not all values have {kind.byte_width} bytes")
    return pa.Array.from_buffers(kind, len(values), [_validity(is_null), pa.py_buffer(data)])


def _variable_width(
    values: Sequence[bytes] | Sequence[str],
    data: bytes,
    kind: pa.DataType,
    is_null: npt.NDArray[np.bool_] | None,
) -> pa.Array:
    """Values from their bytes one after the other; each has as many bytes as it is long."""
    is_large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    if not is_large and len(data) > _MOST_BYTES:
        raise pa.ArrowInvalid(f"{len(data):,} bytes are too many for one array of {kind}")
    if len(values) == 1 and is_null is None:  # numpy would take ten times as long
        ends = (_LARGE_ENDS if is_large else _ENDS).pack(0, len(data))
        return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(ends), pa.py_buffer(data)])
    width = np.int64 if is_large else np.int32
    offsets = np.zeros(len(values) + 1, dtype=width)
    np.cumsum(np.fromiter(map(len, values), width, len(values)), dtype=width, out=offsets[1:])
    buffers = [_validity(is_null), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(values), buffers)


def array_of_scalars(scalars: Sequence[pa.Scalar | None], kind: pa.DataType) -> pa.Array:
    """Scalars of one type; NULL for None."""
    if pa.types.is_string(kind):
        return texts_array([None if each is None else each.as_py() for each in scalars], kind)
    if pa.types.is_date32(kind):
        days = [None if each is None else each.value for each in scalars]
        return integers_array(days, pa.int32()).cast(kind)
    if pa.types.is_signed_integer(kind):
        return integers_array([None if each is None else each.as_py() for each in scalars], kind)
    null = pa.nulls(1, kind)
    arrays = [null if each is None else pa.repeat(each, 1) for each in scalars]
    return pa.concat_arrays(arrays) if arrays else pa.nulls(0, kind)


def _is_none(values: Sequence[object]) -> npt.NDArray[np.bool_] | None:
    if None not in values:
        return None
    return np.array([value is None for value in values], dtype=bool)


def integer_scalar(value: int, kind: pa.DataType) -> pa.Scalar:
    """An integer that fits a signed integer type."""
    data = pa.py_buffer(value.to_bytes(kind.bit_width // 8, sys.byteorder, signed=True))
    return pa.Array.from_buffers(kind, 1, [None, data])[0]


def text_scalar(text: str, kind: pa.DataType | None = None) -> pa.Scalar:
    """A text, by default a ``string``."""
    return texts_array([text], kind or pa.string())[0]


def binary_scalar(value: bytes, kind: pa.DataType | None = None) -> pa.Scalar:
    """A binary value, by default ``binary``; see `binary_array`."""
    return binary_array([value], kind)[0]


def float_scalar(value: float, kind: pa.DataType) -> pa.Scalar:
    """A floating-point number of a type."""
    return numbers_array(np.array([value], dtype=kind.to_pandas_dtype()))[0]


def truth_scalar(value: bool) -> pa.Scalar:
    """A boolean."""
    return pa.Array.from_buffers(pa.bool_(), 1, [None, pa.py_buffer(bytes([value]))])[0]


def scalar(value: object, kind: pa.DataType) -> pa.Scalar:
    """What ``pyarrow.scalar(value, kind)`` returns.

    Args:
        value: Days and other units since the epoch are integers.
    """
    if value is None:
        return pa.nulls(1, kind)[0]
    if isinstance(value, bool) and pa.types.is_boolean(kind):
        return truth_scalar(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if pa.types.is_signed_integer(kind):
            return integer_scalar(value, kind)
        if pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
            width = np.int32 if pa.types.is_date32(kind) else np.int64
            buffers = [None, pa.py_buffer(np.array([value], dtype=width))]
            return pa.Array.from_buffers(kind, 1, buffers)[0]
    if isinstance(value, float | np.floating) and (
        pa.types.is_float32(kind) or pa.types.is_float64(kind)
    ):
        return float_scalar(float(value), kind)
    if isinstance(value, str) and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return text_scalar(value, kind)
    if isinstance(value, bytes) and pa.types.is_binary(kind):
        return binary_scalar(value)
    if isinstance(value, Decimal) and pa.types.is_decimal128(kind) and value.is_finite():
        unscaled = value.scaleb(kind.scale, _DIGITS)
        if unscaled == int(unscaled) and abs(unscaled) < 10**kind.precision:
            bits = int(unscaled).to_bytes(16, "little", signed=True)
            return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(bits)])[0]
    with _with_pandas:
        return pa.scalar(value, kind)


def rows_without_columns(rows: int) -> pa.RecordBatch:
    """A batch that has a length but no columns."""
    return pa.record_batch([pa.nulls(rows)], names=["_"]).select([])


def nullable(columns: pa.Schema) -> pa.Schema:
    """The same columns, all of which may be NULL."""
    last = _last_nullable.get()
    if last is None or not last[0].equals(columns, check_metadata=True):
        last = columns, pa.schema([each.with_nullable(True) for each in columns])
        _last_nullable.set(last)
    return last[1]


_last_nullable: ContextVar[tuple[pa.Schema, pa.Schema] | None] = ContextVar(
    "last_nullable", default=None
)
"""The last columns: a query asks for the same ones of each file."""


FALSE = truth_scalar(False)
TRUE = truth_scalar(True)


def truths_array(
    truths: npt.NDArray[np.bool_], is_null: npt.NDArray[np.bool_] | None = None
) -> pa.Array:
    """Booleans; NULL where the mask says so."""
    return pa.Array.from_buffers(pa.bool_(), len(truths), [_validity(is_null), _bits(truths)])


def _validity(is_null: npt.NDArray[np.bool_] | None) -> pa.Buffer | None:
    return None if is_null is None or not is_null.any() else _bits(~is_null)


def _bits(truths: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(truths, bitorder="little"))


def as_numbers(values: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """Numbers without NULL as numpy sees them: read-only, and without a copy of a single chunk."""
    array = _single(values)
    kind = np.dtype(array.type.to_pandas_dtype())
    if kind.kind not in "iuf" or 8 * kind.itemsize != array.type.bit_width:
        raise TypeError(f"{array.type} has other values in numpy.")
    if not len(array):
        return np.empty(0, dtype=kind)
    start = array.offset * kind.itemsize
    return np.frombuffer(array.buffers()[1], dtype=kind, count=len(array), offset=start)


def as_truths(values: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Booleans without NULL as numpy has them."""
    array = _single(values)
    if not len(array):
        return np.empty(0, dtype=bool)
    byte, bit = divmod(array.offset, 8)
    bits = np.frombuffer(array.buffers()[1], dtype=np.uint8, offset=byte)
    return np.unpackbits(bits, count=bit + len(array), bitorder="little")[bit:].view(bool)


def _single(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if array.null_count:
        raise ValueError("NULL has no value in numpy.")
    return array
