"""Sends the statistics of each slice from tasks to the driver together with the tasks' results, so
that this needs no extra job.

One accumulator serves all queries of a Spark context, since PySpark keeps each accumulator until
the process ends. In the driver it passes reports on and keeps nothing.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from threading import Lock
from typing import TypeAlias
from weakref import WeakKeyDictionary

from pyspark import Accumulator, AccumulatorParam, SparkContext

from hudi_index_service.read.statistics import SliceStatistics

log = logging.getLogger(__name__)

MOST_SLICES = 20_000
"""The maximum number of slices of all expected runs; each takes a few hundred bytes. A DataFrame
may be evaluated at any time and any number of times, and its end is not reported."""

Listener: TypeAlias = Callable[[int, SliceStatistics], None]
"""Takes the number and the statistics of a slice. Called in the driver by the thread that Spark's
scheduler waits for, so it must be fast."""

_SliceReport: TypeAlias = tuple[int, int, SliceStatistics]


def _send(
    accumulator: "Accumulator[list[_SliceReport]]",
    run: int,
    number: int,
    statistics: SliceStatistics,
) -> None:
    accumulator.add([(run, number, statistics)])


class TaskReports:
    """The driver's end, one per Spark context; see `task_reports`."""

    def __init__(self, context: SparkContext) -> None:
        self._lock = Lock()
        self._numbers = count(1)
        self._runs: OrderedDict[int, tuple[int, Sequence[Listener]]] = OrderedDict()
        self._slices = 0
        self._accumulator = context.accumulator([], _Delivering(self._deliver))

    def expect(self, slices: int, listeners: Sequence[Listener]) -> Listener:
        """What sends the statistics of a slice with a task's result, for the tasks of a run;
        nothing is sent if the task fails or is stopped early. If Spark runs a task twice, they are
        sent twice. Beyond `MOST_SLICES` slices, the least recently active runs are dropped."""
        with self._lock:
            run = next(self._numbers)
            self._runs[run] = slices, listeners
            self._slices += slices
            while self._slices > MOST_SLICES and len(self._runs) > 1:
                _, (dropped_slices, _) = self._runs.popitem(last=False)
                self._slices -= dropped_slices
        return partial(_send, self._accumulator, run)

    def _deliver(self, reports: Sequence[_SliceReport]) -> None:
        for run, number, statistics in reports:
            with self._lock:
                if run not in self._runs:
                    continue
                self._runs.move_to_end(run)
                _, listeners = self._runs[run]
            for listener in listeners:
                try:
                    listener(number, statistics)
                except Exception:  # an error here would stop all accumulators of the session
                    log.exception("The statistics of a task are not counted.")


class _Delivering(AccumulatorParam[list[_SliceReport]]):
    """Passes reports on in the driver; in tasks, where there is nobody to pass them to, collects
    them."""

    def __init__(self, deliver: Callable[[Sequence[_SliceReport]], None] | None = None) -> None:
        self._deliver = deliver

    def zero(self, value: list[_SliceReport]) -> list[_SliceReport]:
        return []

    def addInPlace(
        self, value1: list[_SliceReport], value2: list[_SliceReport]
    ) -> list[_SliceReport]:
        (self._deliver or value1.extend)(value2)
        return value1

    def __reduce__(self) -> tuple[type["_Delivering"], tuple[()]]:
        return _Delivering, ()


def task_reports(context: SparkContext) -> TaskReports:
    """The reports of a context's tasks."""
    with _making:
        reports = _by_context.get(context)
        if reports is None:
            reports = _by_context[context] = TaskReports(context)
        return reports


_making = Lock()
_by_context: "WeakKeyDictionary[SparkContext, TaskReports]" = WeakKeyDictionary()
