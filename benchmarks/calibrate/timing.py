"""Measures the times of many small tasks, and fits constants to them."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TypeVar

import numpy as np

Name = TypeVar("Name", bound=Hashable)

_LEAST_ROUNDS = 3
_LEAST_MS = 2.0  # a shorter task is repeated
_MOST_REPEATS = 100


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
        repeats = {name: _repeats(work) for name, work in works.items()}
        times: dict[Name, list[float]] = {name: [] for name in works}
        number = 0
        while number < _LEAST_ROUNDS or perf_counter() < until:
            for name, work in works.items():
                times[name].append(_milliseconds(work, repeats[name]))
            number += 1
        return {name: min(each) for name, each in times.items()}


def _repeats(work: Callable[[], object]) -> int:
    work()
    return max(1, min(_MOST_REPEATS, int(_LEAST_MS / max(_milliseconds(work, 1), 1e-6))))


def _milliseconds(work: Callable[[], object], times: int) -> float:
    started = perf_counter()
    for _ in range(times):
        work()
    return (perf_counter() - started) * 1000 / times


def explained(counts: Sequence[Sequence[float]], times: Sequence[float]) -> list[float]:
    """The non-negative cost of each counted unit, by least squares of the relative errors.

    Args:
        counts: For each time, the number of each unit.
        times: The measured times.
    """
    measured_times = np.asarray(times, dtype=float)
    weighted = np.asarray(counts, dtype=float) / measured_times[:, None]
    scale = np.abs(weighted).max(axis=0)
    scale[scale == 0] = 1.0
    weighted = weighted / scale
    active = list(range(weighted.shape[1]))
    costs = np.zeros(weighted.shape[1])
    while active:  # drops the most negative cost until none is negative
        solution = np.linalg.lstsq(weighted[:, active], np.ones(len(measured_times)), rcond=None)[0]
        if solution.min() >= 0:
            costs[active] = solution
            break
        active.pop(int(solution.argmin()))
    return [float(each) for each in costs / scale]
