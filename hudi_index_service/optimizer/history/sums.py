"""Decaying sums of measurements: what is one half-life old counts half."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

_MOST = math.log(1000)  # the maximum error that one query's guess counts

_DOUBT = math.log(4) ** 2
"""The variance of the errors between shapes, in logarithms. The less a shape's errors vary between
its queries, compared to this, the more they count."""

_NOISE = 0.05  # variance that a few queries cannot show


@dataclass(slots=True)
class Sums:
    """Named sums; unknown names are 0."""

    values: dict[str, float] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        return self.values.get(name, 0.0)

    def add(self, name: str, amount: float) -> None:
        """Adds to one sum."""
        self.values[name] = self.values.get(name, 0.0) + amount

    def fade(self, share: float) -> None:
        """Multiplies all sums by this share."""
        if share != 1.0:
            for name in self.values:
                self.values[name] *= share

    def add_all(self, others: Mapping[str, float]) -> None:
        """Adds other sums."""
        values = self.values
        for name, amount in others.items():
            values[name] = values.get(name, 0.0) + amount

    def add_ratio(self, name: str, *, expected: float, actual: float) -> None:
        """Adds the error of one query's guess of an amount."""
        error = max(-_MOST, min(_MOST, math.log((actual + 1) / (expected + 1))))
        self.add_all({f"{name}.n": 1.0, f"{name}.ln": error, f"{name}.ln2": error * error})

    def seen(self, name: str) -> float:
        """The number of guesses of the amount, older ones in part."""
        return self[f"{name}.n"]

    def factor(self, name: str) -> float:
        """The factor for guesses of the amount; 1 without any guess.

        The mean error of the guesses' logarithms is drawn to 0 (no correction) the more, the fewer
        guesses there are and the more they vary. It is the mean of a normal distribution with a
        normal prior around 0 (Gelman et al., Bayesian Data Analysis, 2.5).
        """
        count = self.seen(name)
        if count <= 0:
            return 1.0
        mean = self[f"{name}.ln"] / count
        variance = max(0.0, self[f"{name}.ln2"] / count - mean * mean) + _NOISE
        return math.exp(mean * count / (count + variance / _DOUBT))
