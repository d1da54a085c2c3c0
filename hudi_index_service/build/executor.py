"""Where a build's tasks run. The local executor uses this process's threads; `build.spark` runs the
same task code in Spark executors."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Protocol

from hudi_index_service.build.task import BuildTask, TaskOutcome, run_task


class Executor(Protocol):
    """Runs tasks."""

    name: str

    def run(self, tasks: Sequence[BuildTask]) -> Iterator[TaskOutcome | None]:
        """Runs all tasks and yields each outcome as it is known; yields None now and then while
        nothing is, so that the caller can show that it lives."""


class LocalExecutor:
    """Runs tasks in threads of this process: for small tables, tests and single machines.

    Args:
        parallelism: Base files indexed at once.
        patience: Seconds without an outcome after which None is yielded.
    """

    name = "local"

    def __init__(self, parallelism: int, *, patience: float = 1.0) -> None:
        self._parallelism = parallelism
        self._patience = patience

    def run(self, tasks: Sequence[BuildTask]) -> Iterator[TaskOutcome | None]:
        """See `Executor.run`."""
        with ThreadPoolExecutor(self._parallelism, thread_name_prefix="index-build") as pool:
            waiting = {pool.submit(run_task, task) for task in tasks}
            while waiting:
                try:
                    for future in as_completed(waiting, timeout=self._patience):
                        waiting.remove(future)
                        yield future.result()
                        break
                except TimeoutError:
                    yield None
