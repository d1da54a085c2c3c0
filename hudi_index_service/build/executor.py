"""Where a build's tasks run. The local executor uses this process's threads; `build.spark` runs the
same task code in Spark executors."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

from hudi_index_service.build.schedule import Schedule
from hudi_index_service.build.task import BuildTask, TaskOutcome, run_task
from hudi_index_service.index.factory import check_runtime, index_type


class Executor(ABC):
    """Runs tasks, a large base file in parts (see `Schedule`); with deadlines it begins them in the
    order given.

    Attributes:
        parallelism: Tasks at once.
        processes: Processes that these are spread over.
    """

    parallelism: int
    processes: int

    def check_runtime(self, index_types: Collection[str]) -> None:
        """Looks once, before anything is built, whether what these index types run on is there
        where the tasks will run: in this process, unless an executor says otherwise.

        Raises:
            NativeModuleMissing: it is not.
        """
        for name in index_types:
            check_runtime(index_type(name))

    @abstractmethod
    def run(self, tasks: Sequence[BuildTask]) -> Generator[TaskOutcome | None, None, None]:
        """Runs all tasks and yields each outcome as it is known; yields None now and then while
        nothing is, so that the caller can show that it lives. Closing the generator gives up:
        what has not begun never will.

        Raises:
            BuildFailed: the tasks could not be run to their end.
        """


class LocalExecutor(Executor):
    """Runs tasks in threads of this process: for small tables, tests and single machines.

    Args:
        parallelism: Base files indexed at once.
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
            yield from self._run(schedule)
            yield from self._run(schedule.undecided())
        finally:
            schedule.give_up()

    def _run(self, schedule: Schedule) -> Generator[TaskOutcome | None, None, None]:
        with ThreadPoolExecutor(self.parallelism, thread_name_prefix="index-build") as pool:
            positions = {
                pool.submit(run_task, task): position
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
