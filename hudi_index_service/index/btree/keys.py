"""Values as keys whose order is Spark's order of the values, and sets of keys as intervals.

A number, boolean, date or timestamp, and a decimal of up to 18 digits, is an integer of 64 bits
(see `hudi_index_service.index.number_encoding`: NaN is one value above all others, -0.0 is 0.0).
Its key is unsigned, 0 for the least integer, with big-endian bytes. Longer decimals are 16 such
bytes. Strings are UTF-8, binary is unchanged; the key of a long value is its first `CUT_BYTES`.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import as_numbers, as_truths, integer_scalar
from hudi_index_service.index.intervals import Interval, point
from hudi_index_service.index.number_encoding import INT64_MIN, encode_array, encode_wide, unsigned
from hudi_index_service.index.stored_column import is_wide_number

CUT_BYTES = 508
"""The length of the longest key. A key of exactly so many bytes may be the beginning of a longer
value, a shorter one is a whole value."""

_NUMBER_BYTES = 8


Keys: TypeAlias = pa.Array
"""Keys without NULL: numbers as unsigned integers of 64 bits, or bytes as ``large_binary``."""


def key_buffers(keys: Keys) -> tuple[Any, Any]:
    """The keys one after the other, and where each of several byte keys starts among these bytes;
    None for numbers."""
    if pa.types.is_uint64(keys.type):
        return as_numbers(keys), None
    _, offsets, data = keys.buffers()
    starts = np.frombuffer(offsets, dtype=np.int64)[keys.offset :][: len(keys) + 1]
    content = memoryview(data or b"").cast("B")[starts[0] : starts[-1]]
    return content, starts - starts[0]


def first_of_equal(ordered: Keys) -> npt.NDArray[np.bool_]:
    """For each of some sorted keys, whether it differs from the one before."""
    is_first = np.ones(len(ordered), dtype=bool)
    is_first[1:] = as_truths(pc.not_equal(ordered[1:], ordered[:-1]))
    return is_first


def number_keys(values: pa.Array) -> np.ndarray:
    """The keys of values without NULL whose type has number keys."""
    return unsigned(as_numbers(encode_array(values)))


def byte_keys(values: pa.Array) -> tuple[pa.Array, int]:
    """The keys of all other values without NULL, in a binary type, and the number of cut ones."""
    if is_wide_number(values.type):
        return encode_wide(values), 0
    keys = as_binary(values)
    lengths = pc.binary_length(keys)
    if not len(keys) or pc.max(lengths).as_py() < CUT_BYTES:
        return keys, 0
    cut = int(pc.sum(pc.greater_equal(lengths, integer_scalar(CUT_BYTES, lengths.type))).as_py())
    return pc.binary_slice(keys, 0, CUT_BYTES), cut


def as_binary(values: pa.Array) -> pa.Array:
    """Text as bytes; nothing is checked or changed."""
    if pa.types.is_string(values.type):
        return values.view(pa.binary())
    return values.view(pa.large_binary()) if pa.types.is_large_string(values.type) else values


def key_of_number(encoded: int) -> bytes:
    """The key of a number that `encode_range` returns."""
    return (encoded - INT64_MIN).to_bytes(_NUMBER_BYTES, "big")


def bytes_of_numbers(keys: np.ndarray) -> list[bytes]:
    """Number keys as bytes."""
    raw = keys.astype(">u8").tobytes()
    return [raw[at : at + _NUMBER_BYTES] for at in range(0, len(raw), _NUMBER_BYTES)]


def key_bytes(keys: Keys, at: int) -> bytes:
    """One key as bytes."""
    key: int | bytes = keys[at].as_py()
    return key if isinstance(key, bytes) else key.to_bytes(_NUMBER_BYTES, "big")


def position(keys: Keys, bound: bytes) -> int:
    """The number of the sorted keys that are below a byte string."""
    if not pa.types.is_uint64(keys.type):
        return bisect_left(keys, bound, key=lambda key: key.as_py())
    # The least number whose key, as bytes, is not below the bound.
    number = int.from_bytes(bound[:_NUMBER_BYTES].ljust(_NUMBER_BYTES, b"\0"), "big")
    number += len(bound) > _NUMBER_BYTES
    return len(keys) if number >> 64 else int(np.searchsorted(as_numbers(keys), np.uint64(number)))


EVERY_KEY = Interval(b"", None)

Intervals = Sequence[Interval]
"""In order and apart from each other."""


@dataclass(frozen=True)
class Points(Sequence[Interval]):
    """Single keys as intervals, which are made where they are needed: a list of values may have
    thousands.

    Attributes:
        keys: In order, each once.
    """

    keys: Sequence[bytes]

    @cached_property
    def joined(self) -> bytes:
        """The keys one after the other."""
        return b"".join(self.keys)

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where each key starts among these bytes, and the end of the last one."""
        ends = np.fromiter(map(len, self.keys), np.int64, len(self.keys)).cumsum()
        return np.concatenate([np.zeros(1, np.int64), ends])

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, at: int) -> Interval: ...

    @overload
    def __getitem__(self, at: slice) -> "Points": ...

    def __getitem__(self, at: int | slice) -> "Interval | Points":
        return Points(self.keys[at]) if isinstance(at, slice) else point(self.keys[at])


def intersection(one: Iterable[Interval], other: Iterable[Interval]) -> Intervals:
    """The keys that lie in both."""
    left, right = list(one), list(other)
    overlaps, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        a, b = left[i], right[j]
        both = a & b
        if not both.is_empty:
            overlaps.append(both)
        if a.high is not None and a.high == both.high:
            i += 1
        else:
            j += 1
    return tuple(overlaps)
