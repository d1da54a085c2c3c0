"""Runs a build's tasks. The local executor uses threads of this process; `build.spark` runs the
same task code in Spark executors."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from hudi_index_service.build.entry.fact_writer import FactWriter
from hudi_index_service.build.entry.task import BuildTask, TaskOutcome, run_task
from hudi_index_service.build.schedule import Schedule
from hudi_index_service.config import BuildSettings
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

    def check_runtime(self, index_types: Collection[str]) -> None:
        """Checks once, before the build, that the runtimes of these index types are installed where
        the tasks will run: in this process, unless an executor overrides it.

        Raises:
            NativeModuleMissing: a runtime is missing.
        """
        for name in index_types:
            index_type(name).check_runtime()

    @abstractmethod
    def run(self, tasks: Sequence[BuildTask]) -> Generator[TaskOutcome | None, None, None]:
        """Runs all tasks and yields each outcome as soon as it is known. Yields None now and then
        in between, so that the caller can write heartbeats. Closing the generator cancels the tasks
        that have not begun.

        Raises:
            BuildFailed: the tasks could not be run to their end.
        """


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
        with ThreadPoolExecutor(self.parallelism, thread_name_prefix="index-build") as pool:
            positions = {
                pool.submit(run_task, task, facts): position
                for position, task in enumerate(schedule.tasks)
            }
            waiting = set(positions)
            try:
                while waiting:
                    done, waiting = wait(waiting, self._patience, FIRST_COMPLETED)
                    for future in done:
                        yield schedule.ended(positions[future], future.result())
                    if not done:
                        yield None
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
