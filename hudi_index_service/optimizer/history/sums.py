"""Sums of what queries had, in which the past fades: what was seen half a life ago counts half."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

_MOST = math.log(1000)  # by so much at most one query's guess counts as wrong
_MOST_MS = math.log(16)  # of a time: a busy machine takes so many times as long

_DOUBT = math.log(4) ** 2
"""How far guesses are wrong from shape to shape, as a variance of logarithms: next to it, what is
seen in a shape counts the more, the less it varies from query to query."""

_NOISE = 0.05  # variance that a few queries cannot show


@dataclass(slots=True)
class Sums:
    """Named sums; names that were never added to are 0."""

    values: dict[str, float] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        return self.values.get(name, 0.0)

    def add(self, name: str, amount: float) -> None:
        """Adds to one sum."""
        self.values[name] = self.values.get(name, 0.0) + amount

    def fade(self, share: float) -> None:
        """Leaves only this share of all of them."""
        if share != 1.0:
            for name in self.values:
                self.values[name] *= share

    def add_all(self, others: Mapping[str, float]) -> None:
        """Adds other sums."""
        values = self.values
        for name, amount in others.items():
            values[name] = values.get(name, 0.0) + amount

    def add_ratio(self, name: str, *, expected: float, actual: float) -> None:
        """One query's guess of an amount, and the amount: by how much the guess was wrong."""
        wrong = math.log((actual + 1) / (expected + 1))
        most = _MOST_MS if name.endswith("_ms") else _MOST
        wrong = max(-most, min(most, wrong))
        self.add_all({f"{name}.n": 1.0, f"{name}.ln": wrong, f"{name}.ln2": wrong * wrong})

    def seen(self, name: str) -> float:
        """How many guesses of the amount count, older ones in part."""
        return self[f"{name}.n"]

    def factor(self, name: str) -> float:
        """By what guesses of the amount are to be multiplied; 1 if nothing is known.

        The guesses' logarithms are off by a mean that is drawn to 0 (no correction) the more, the
        fewer there are and the more they vary: the mean of a normal distribution whose prior is one
        about 0 (Gelman et al., Bayesian Data Analysis, 2.5).
        """
        count = self.seen(name)
        if count <= 0:
            return 1.0
        mean = self[f"{name}.ln"] / count
        variance = max(0.0, self[f"{name}.ln2"] / count - mean * mean) + _NOISE
        return math.exp(mean * count / (count + variance / _DOUBT))
