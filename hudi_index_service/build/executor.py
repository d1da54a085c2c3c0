"""Runs a build's tasks. The local executor uses threads of this process; `build.spark` runs the
same task code in Spark executors."""

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeAlias

from hudi_index_service.build.entry.fact_writer import FactWriter
from hudi_index_service.build.entry.task import BuildTask, TaskOutcome, run_task
from hudi_index_service.build.schedule import Schedule
from hudi_index_service.config import BuildSettings
from hudi_index_service.errors import NativeModuleMissing
from hudi_index_service.index.factory import index_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def executor_on(spark: "SparkSession | None", settings: BuildSettings) -> "Executor":
    """Runs tasks on a Spark session; without one, in threads of this process."""
    if spark is None:
        return LocalExecutor(settings.parallelism)
    from hudi_index_service.build.spark import SparkExecutor

    return SparkExecutor(spark)


class Executor(ABC):
    """Runs tasks, with large base files in parts (see `Schedule`). Tasks with deadlines begin in
    the given order.

    Attributes:
        parallelism: The number of concurrent tasks.
        processes: The number of processes that the tasks are spread over.
    """

    parallelism: int
    processes: int

    @property
    def cores(self) -> int:
        """How many of the concurrent tasks run at full speed."""
        return self.parallelism

    def missing_runtimes(self, index_types: Collection[str]) -> dict[str, NativeModuleMissing]:
        """Checks once, before the build, which of these index types cannot work where the tasks
        will run: in this process, unless an executor overrides it. Returns name → why."""
        return missing_runtimes(index_types)

    @abstractmethod
    def run(self, tasks: Sequence[BuildTask]) -> Generator[TaskOutcome | None, None, None]:
        """Runs all tasks and yields each outcome as soon as it is known. Yields None now and then
        in between, so that the caller can write heartbeats. Closing the generator cancels the tasks
        that have not begun.

        Raises:
            BuildFailed: the tasks could not be run to their end.
        """


def missing_runtimes(index_types: Iterable[str]) -> dict[str, NativeModuleMissing]:
    """The index types that cannot work in this process, for lack of a module or of Java: name →
    why."""
    missing = {}
    for name in index_types:
        try:
            index_type(name).check_runtime()
        except NativeModuleMissing as error:
            missing[name] = error
    return missing


class LocalExecutor(Executor):
    """Runs tasks in threads of this process: for small tables, tests and single machines.

    Args:
        parallelism: The number of base files indexed at once.
        patience: Seconds without an outcome after which None is yielded.
    """

    def __init__(self, parallelism: int, *, patience: float = 1.0) -> None:
        self.parallelism = parallelism
        self.processes = 1
        self._patience = patience

    @property
    def cores(self) -> int:
        """See `Executor.cores`."""
        return min(self.parallelism, len(os.sched_getaffinity(0)))

    def run(self, tasks: Sequence[BuildTask]) -> Generator[TaskOutcome | None, None, None]:
        """See `Executor.run`."""
        schedule = Schedule(tasks, slots=self.parallelism, processes=self.processes)
        try:
            with FactWriter() as facts:
                yield from self._run(schedule, facts)
                yield from self._run(schedule.undecided(), facts)
        finally:
            schedule.give_up()

    def _run(
        self, schedule: Schedule, facts: FactWriter
    ) -> Generator[TaskOutcome | None, None, None]:
        ended: _Ended = SimpleQueue()
        with ThreadPoolExecutor(self.parallelism, thread_name_prefix="index-build") as pool:
            try:
                for position, task in enumerate(schedule.tasks):
                    future = pool.submit(run_task, task, facts)
                    # Cheaper than `concurrent.futures.wait`, which visits all that are waiting.
                    future.add_done_callback(partial(_put, ended, position))
                for _ in schedule.tasks:
                    while (outcome := self._next(ended)) is None:
                        yield None
                    yield schedule.ended(*outcome)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _next(self, ended: "_Ended") -> tuple[int, TaskOutcome] | None:
        """The next outcome, and its task's position; None after a while without any."""
        try:
            position, future = ended.get(timeout=self._patience)
        except Empty:
            return None
        return position, future.result()


_Ended: TypeAlias = "SimpleQueue[tuple[int, Future[TaskOutcome]]]"


def _put(ended: _Ended, position: int, future: "Future[TaskOutcome]") -> None:
    ended.put((position, future))
