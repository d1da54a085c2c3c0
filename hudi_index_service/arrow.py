"""Arrow values of the usual kinds, made without pandas.

Where pandas is installed, `pyarrow.scalar` and `pyarrow.array` import it to find out that a value
is none of its, which takes a third of a second of a process's first query.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def numbers_array(values: npt.NDArray[Any]) -> pa.Array:
    """Numbers without NULL, without a copy if they are contiguous."""
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, buffer])


def integers_array(values: Sequence[int], kind: pa.DataType) -> pa.Array:
    """Integers that fit a signed integer type."""
    return numbers_array(np.array(values, dtype=kind.to_pandas_dtype()))


def texts_array(texts: Sequence[str], kind: pa.DataType) -> pa.Array:
    """Texts as ``string`` or ``large_string``."""
    encoded = [text.encode() for text in texts]
    wide = pa.types.is_large_string(kind)
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64 if wide else np.int32)
    np.cumsum([len(each) for each in encoded], out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(kind, len(encoded), buffers)


def integer_scalar(value: int, kind: pa.DataType) -> pa.Scalar:
    """An integer that fits a signed integer type."""
    return integers_array([value], kind)[0]


def text_scalar(text: str, kind: pa.DataType | None = None) -> pa.Scalar:
    """A text, by default a ``string``."""
    return texts_array([text], kind or pa.string())[0]
