"""Intervals of byte strings: of the keys of a tree, or the terms of a field."""

from dataclasses import dataclass

from hudi_index_service.predicate.bounds import above_prefix


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """The byte strings from `low` (inclusive) to `high` (exclusive); None for no bound."""

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
        """Whether the interval contains a byte string."""
        return self.low <= key and (self.high is None or key < self.high)

    def __and__(self, other: "Interval") -> "Interval":
        highs = [each for each in (self.high, other.high) if each is not None]
        return Interval(max(self.low, other.low), min(highs, default=None))


def point(key: bytes) -> Interval:
    """The interval of one byte string."""
    return Interval(key, after(key))


def prefixed(start: bytes) -> Interval:
    """The byte strings that begin with `start`."""
    return Interval(start, above_prefix(start))


def after(key: bytes) -> bytes:
    """The least byte string above another."""
    return key + b"\0"
