"""Rates: what indexing costs per byte of base file, from measurements of some of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Self


@dataclass(frozen=True, slots=True)
class Measurement:
    """What indexing a base file, or some rows of one, took.

    Attributes:
        bytes: The bytes of the base file; of some rows, their share of it.
        seconds: The time on one core.
        index_bytes: The size of the index.
    """

    bytes: float
    seconds: float
    index_bytes: float


@dataclass(frozen=True, slots=True)
class Rate:
    """An amount per byte of base file.

    Attributes:
        mean: The amount.
        error: Two standard errors of it; None if they are unknown, with a single measurement.
    """

    mean: float
    error: float | None

    @classmethod
    def of(cls, bytes: Sequence[float], amounts: Sequence[float]) -> Self:
        """The rate of some measured amounts, and how far it may be off if they are a random sample
        (the ratio estimator; Cochran, Sampling Techniques, section 6.4)."""
        total, count = sum(bytes), len(bytes)
        if not total:
            return cls(0.0, None)
        mean = sum(amounts) / total
        if count < 2:
            return cls(mean, None)
        squares = sum((y - mean * x) ** 2 for x, y in zip(bytes, amounts, strict=True))
        return cls(mean, 2 * sqrt(squares * count / (count - 1)) / total)

    @classmethod
    def sum(cls, rates: Iterable["Rate"]) -> Self:
        """The sum of rates whose errors may go the same way."""
        rates = tuple(rates)
        errors = [each.error for each in rates if each.error is not None]
        mean = sum(each.mean for each in rates)
        return cls(mean, sum(errors) if errors and len(errors) == len(rates) else None)


@dataclass(frozen=True, slots=True)
class Cost:
    """Rates of an entry, or of one of its columns: seconds on one core, and bytes of the index."""

    seconds: Rate
    index_bytes: Rate

    @classmethod
    def of(cls, measurements: Sequence[Measurement]) -> Self:
        """The cost by some measurements."""
        bytes = [each.bytes for each in measurements]
        return cls(
            Rate.of(bytes, [each.seconds for each in measurements]),
            Rate.of(bytes, [each.index_bytes for each in measurements]),
        )

    @classmethod
    def sum(cls, costs: Iterable["Cost"]) -> Self:
        """The cost of an entry by those of its columns."""
        costs = tuple(costs)
        return cls(
            Rate.sum(each.seconds for each in costs), Rate.sum(each.index_bytes for each in costs)
        )
