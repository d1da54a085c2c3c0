"""What a manifest knows of a column's values, prepared for estimates."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from operator import eq
from typing import Any, Self, TypeAlias

from hudi_index_service.index.contract import StoredColumn

EQUAL = 0.005
"""The share of rows with one value, if neither the number of distinct values nor their bounds are
known: PostgreSQL's default."""

Share: TypeAlias = Callable[[Any, bool], float]
"""Guesses the share of values below one within the bounds, optionally including values equal to it
or, for bytes, with it as prefix."""

_DIGITS = 8  # digits of base 95 that a double can distinguish
_KINDS = ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A))  # digits, capitals, small letters


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a column in a base file.

    Attributes:
        nulls: The number of rows where it is NULL.
        count: The number of rows where it is not NULL.
        least, greatest: Bounds of all values, none of which is NaN, as `bound_of` encodes them;
            None if one of them is not known.
        equal: The guessed number of rows per value.
        below: The share of values below one; None if the bounds are not known.
    """

    nulls: int
    count: int
    least: Any
    greatest: Any
    equal: float
    below: Share | None

    @classmethod
    def of(cls, column: StoredColumn, rows: int) -> Self:
        """The values of a column of a base file of this many rows."""
        bounds, nulls = column.bounds(rows), column.null_count
        least, greatest, count = bounds.least, bounds.greatest, max(rows - nulls, 0)
        if least is None or greatest is None:
            equal = count / column.distinct if column.distinct else count * EQUAL
            return cls(nulls, count, None, None, equal, None)
        equal = count / (column.distinct or _distinct(count, least, greatest))
        return cls(nulls, count, least, greatest, equal, share_between(least, greatest))


def _distinct(count: int, least: Any, greatest: Any) -> float:
    """A guess of the number of distinct values: for integers, days and the like no more than fit
    between the bounds; for others the geometric mean of one and all."""
    if isinstance(least, int):
        return float(max(1, min(count, greatest - least + 1)))
    return math.sqrt(max(1, count))


def share_between(least: Any, greatest: Any) -> Share:
    """The share of values below one that lies between two."""
    if isinstance(least, bytes):
        return _share_of_bytes(least, greatest)
    if isinstance(least, int):
        first, span = int(least), int(greatest) - int(least) + 1
        return lambda value, after: float((int(value) - first + after) / span)
    low, width = float(least), float(greatest) - float(least)
    if width == 0 or not math.isfinite(width):
        return lambda value, after: 0.5  # one of them is infinite
    return lambda value, after: float((value - low) / width)


def _share_of_bytes(least: bytes, greatest: bytes) -> Share:
    """Places a text or byte string between two others as PostgreSQL does
    (`convert_string_to_scalar` in its `selfuncs.c`): as a number with one digit per byte, without
    the common prefix, assuming only bytes of the same kinds as those seen."""
    shared = sum(1 for _ in takewhile(bool, map(eq, least, greatest)))
    digits = least[shared : shared + _DIGITS] + greatest[shared : shared + _DIGITS]
    low, high = min(digits, default=0), max(digits, default=255)
    for begin, end in _KINDS:
        if low <= end and high >= begin:
            low, high = min(low, begin), max(high, end)
    scale = shared, low, high - low + 1
    first = _place(least, *scale)
    width = _place(greatest, *scale) - first

    def share(value: bytes, after: bool) -> float:
        if width <= 0:
            return 0.5
        return min(max((_place(value, *scale, after) - first) / width, 0.0), 1.0)

    return share


@lru_cache(maxsize=1_024)  # the base files of a table mostly have the same scale
def _place(value: bytes, shared: int, low: int, base: int, after: bool = False) -> float:
    place, unit = 0.0, 1.0
    for byte in value[shared : shared + _DIGITS]:
        unit /= base
        place += unit * min(max(byte - low, 0), base)
        if not 0 <= byte - low < base:
            break  # bytes after one of another kind are ignored
    return place + unit if after else place
