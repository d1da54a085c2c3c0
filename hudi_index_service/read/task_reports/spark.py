"""Tasks tell the driver what they read of each slice: beside their results, which Spark brings back
anyway, so that it takes no job of its own.

One accumulator serves all queries of a Spark context, since PySpark keeps each of them for as long
as the process lives. In the driver it hands on what comes, and holds nothing.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import TypeAlias
from weakref import WeakKeyDictionary

from pyspark import Accumulator, AccumulatorParam, SparkContext

from hudi_index_service.read.statistics import SliceStatistics

log = logging.getLogger(__name__)

MOST_SLICES = 20_000
"""Of runs that are waited for, altogether: a few hundred bytes each. A DataFrame may be asked for
its rows any time and any number of times, and nobody tells when it is gone."""

Listener: TypeAlias = Callable[[int, SliceStatistics], None]
"""Takes the number of a slice, and what was read of it. Called in the driver, by the thread that
Spark's scheduler waits for: it has to be quick."""

_Told: TypeAlias = tuple[int, int, SliceStatistics]


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What a task needs to tell the driver of a run's slices; crosses to it by pickling."""

    told: "Accumulator[list[_Told]]"
    run: int

    def tell(self, number: int, read: SliceStatistics) -> None:
        """Sends what was read of a slice, with the task's result; nothing of a task that fails or
        that is left before its end. Spark may run a task twice: then it is told twice."""
        self.told.add([(self.run, number, read)])


class TaskReports:
    """The driver's end, one for each Spark context: see `task_reports`."""

    def __init__(self, context: SparkContext) -> None:
        self._lock = Lock()
        self._numbers = count(1)
        self._runs: OrderedDict[int, tuple[int, Sequence[Listener]]] = OrderedDict()
        self._slices = 0
        self._told = context.accumulator([], _Delivered(self._deliver))

    def expect(self, slices: int, listeners: Sequence[Listener]) -> TaskReport:
        """What the tasks of a run need. Beyond `MOST_SLICES` slices, those runs are no longer
        listened to that were heard of longest ago."""
        with self._lock:
            run = next(self._numbers)
            self._runs[run] = slices, listeners
            self._slices += slices
            while self._slices > MOST_SLICES and len(self._runs) > 1:
                _, (gone, _) = self._runs.popitem(last=False)
                self._slices -= gone
        return TaskReport(self._told, run)

    def _deliver(self, told: Sequence[_Told]) -> None:
        for run, number, read in told:
            with self._lock:
                if run not in self._runs:
                    continue
                self._runs.move_to_end(run)
                _, listeners = self._runs[run]
            for listener in listeners:
                try:
                    listener(number, read)
                except Exception:  # an error here would end all accumulators of the session
                    log.exception("What a task read is not counted.")


class _Appended(AccumulatorParam[list[_Told]]):
    """In a task: gathers what is told."""

    def zero(self, value: list[_Told]) -> list[_Told]:
        return []

    def addInPlace(self, value1: list[_Told], value2: list[_Told]) -> list[_Told]:
        value1.extend(value2)
        return value1


class _Delivered(_Appended):
    """In the driver: hands on what comes."""

    def __init__(self, deliver: Callable[[Sequence[_Told]], None]) -> None:
        self._deliver = deliver

    def addInPlace(self, value1: list[_Told], value2: list[_Told]) -> list[_Told]:
        self._deliver(value2)
        return value1

    def __reduce__(self) -> tuple[type[_Appended], tuple[()]]:
        return _Appended, ()


def task_reports(context: SparkContext) -> TaskReports:
    """The reports of a context's tasks."""
    with _making:
        known = _by_context.get(context)
        if known is None:
            known = _by_context[context] = TaskReports(context)
        return known


_making = Lock()
_by_context: "WeakKeyDictionary[SparkContext, TaskReports]" = WeakKeyDictionary()
