"""Sets of keys as intervals of byte strings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """The keys from `low` (inclusive) to `high` (exclusive); None for no bound."""

    low: bytes
    high: bytes | None

    @property
    def is_empty(self) -> bool:
        """Whether the interval contains no byte string."""
        return self.high is not None and self.high <= self.low

    @property
    def is_point(self) -> bool:
        """Whether the interval contains one byte string alone."""
        return self.high == after(self.low)

    def holds(self, key: bytes) -> bool:
        """Whether the interval contains a key."""
        return self.low <= key and (self.high is None or key < self.high)


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


def point(key: bytes) -> Interval:
    """The interval of one key."""
    return Interval(key, after(key))


def after(key: bytes) -> bytes:
    """The least byte string above the key."""
    return key + b"\0"


def above_prefix(start: bytes) -> bytes | None:
    """The least byte string above all that begin with `start`; None if there is none."""
    stem = start.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def prefixed(start: bytes) -> Interval:
    """The keys that begin with `start`."""
    return Interval(start, above_prefix(start))


def intersection(one: Iterable[Interval], other: Iterable[Interval]) -> Intervals:
    """The keys that lie in both."""
    left, right = list(one), list(other)
    overlaps, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        a, b = left[i], right[j]
        both = Interval(max(a.low, b.low), _least(a.high, b.high))
        if not both.is_empty:
            overlaps.append(both)
        if a.high is not None and a.high == both.high:
            i += 1
        else:
            j += 1
    return tuple(overlaps)


def _least(one: bytes | None, other: bytes | None) -> bytes | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
