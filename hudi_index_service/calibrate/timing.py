"""Times of many small pieces of work, and the constants that explain them."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TypeVar

import numpy as np

Name = TypeVar("Name", bound=Hashable)

_LEAST_ROUNDS = 3
_LEAST_MS = 2.0  # a piece of work that takes less is done several times in a row
_MOST_TIMES = 100


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """Measures within a budget.

    Attributes:
        seconds: After so many, no further round begins.
    """

    seconds: float

    def least(self, works: Mapping[Name, Callable[[], object]]) -> dict[Name, float]:
        """Milliseconds that each takes at least, which is what it takes where nothing else runs.
        They take turns, so that what else the machine does now and then is spread over all."""
        until = perf_counter() + self.seconds
        times = {name: _times_in_a_row(work) for name, work in works.items()}
        took: dict[Name, list[float]] = {name: [] for name in works}
        number = 0
        while number < _LEAST_ROUNDS or perf_counter() < until:
            for name, work in works.items():
                took[name].append(_milliseconds(work, times[name]))
            number += 1
        return {name: min(each) for name, each in took.items()}


def _times_in_a_row(work: Callable[[], object]) -> int:
    work()
    return max(1, min(_MOST_TIMES, int(_LEAST_MS / max(_milliseconds(work, 1), 1e-6))))


def _milliseconds(work: Callable[[], object], times: int) -> float:
    started = perf_counter()
    for _ in range(times):
        work()
    return (perf_counter() - started) * 1000 / times


def explained(counts: Sequence[Sequence[float]], took: Sequence[float]) -> list[float]:
    """What one of each counted thing takes, none less than nothing: the least squares of the
    relative errors.

    Args:
        counts: For each time, how many of each thing there were.
        took: The times.
    """
    times = np.asarray(took, dtype=float)
    weighed = np.asarray(counts, dtype=float) / times[:, None]
    scale = np.abs(weighed).max(axis=0)
    scale[scale == 0] = 1.0
    weighed = weighed / scale
    left = list(range(weighed.shape[1]))
    found = np.zeros(weighed.shape[1])
    while left:  # without those that would be negative, as long as there is one
        solved = np.linalg.lstsq(weighed[:, left], np.ones(len(times)), rcond=None)[0]
        if solved.min() >= 0:
            found[left] = solved
            break
        left.pop(int(solved.argmin()))
    return [float(each) for each in found / scale]
