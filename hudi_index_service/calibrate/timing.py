"""Measures the times of many small tasks, and fits constants to them."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TypeVar

import numpy as np

Name = TypeVar("Name", bound=Hashable)

_LEAST_ROUNDS = 3
_LEAST_MS = 2.0  # a shorter task is repeated
_MOST_TIMES = 100


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """Measures within a budget.

    Attributes:
        seconds: Time after which no further round begins.
    """

    seconds: float

    def least(self, works: Mapping[Name, Callable[[], object]]) -> dict[Name, float]:
        """The minimum time of each task in milliseconds, which is its time on an idle machine.
        Tasks take turns, so that other load on the machine affects all of them."""
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
    """The non-negative cost of each counted unit, by least squares of the relative errors.

    Args:
        counts: For each time, the number of each unit.
        took: The times.
    """
    times = np.asarray(took, dtype=float)
    weighed = np.asarray(counts, dtype=float) / times[:, None]
    scale = np.abs(weighed).max(axis=0)
    scale[scale == 0] = 1.0
    weighed = weighed / scale
    left = list(range(weighed.shape[1]))
    found = np.zeros(weighed.shape[1])
    while left:  # drops the most negative cost until none is negative
        solved = np.linalg.lstsq(weighed[:, left], np.ones(len(times)), rcond=None)[0]
        if solved.min() >= 0:
            found[left] = solved
            break
        left.pop(int(solved.argmin()))
    return [float(each) for each in found / scale]
