"""Runs a build's tasks, large base files in parts. The local executor uses threads of this process;
`build.spark` runs the same task code in Spark executors."""

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeAlias

from hudi_index_service.build.entry.parts import Part, Staging, largest_first, part_counts
from hudi_index_service.build.entry.planning_facts import FactWriter
from hudi_index_service.build.entry.task import BuildTask, TaskOutcome, TaskStatus, run_task
from hudi_index_service.errors import IndexServiceError, NativeModuleMissing
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.manifest import entry_folder

if TYPE_CHECKING:
    pass

log = logging.getLogger(__name__)

_Ended: TypeAlias = "SimpleQueue[tuple[int, Future[TaskOutcome]]]"

# The first of these that a part has decides the outcome of a base file built in parts.
_DECISIVE = (
    TaskStatus.BUILT,
    TaskStatus.PRESENT,
    TaskStatus.UNWANTED,
    TaskStatus.GONE,
    TaskStatus.FAILED,
    TaskStatus.LEFT,
)


class Schedule:
    """The tasks of a build as an executor runs them, with large base files in parts. Tasks begin in
    the given order if there is a deadline, else the largest first.

    Args:
        tasks: One task per base file.
        slots: The number of concurrent tasks.
        processes: The number of processes that the tasks are spread over. Tasks of one process
            share the memory that index writers may hold.
        in_parts: Whether base files may be built in parts.
    """

    def __init__(
        self,
        tasks: Sequence[BuildTask],
        *,
        slots: int,
        processes: int | None = None,
        in_parts: bool = True,
    ) -> None:
        self._tasks = tuple(tasks)
        self._slots, self._processes = slots, processes
        self._outcomes: list[dict[int, TaskOutcome]] = [{} for _ in tasks]
        self._yielded = [False] * len(tasks)
        least = min((task.part_bytes for task in tasks), default=1)
        sizes = [task.due.base_file.size for task in tasks]
        self._counts = part_counts(sizes, slots=slots if in_parts else 1, least=least)
        parts = [
            (number, Part(part, count))
            for number, count in enumerate(self._counts)
            for part in range(count)
        ]
        if all(task.deadline is None for task in tasks):
            weights = [sizes[number] / part.of for number, part in parts]
            parts = [parts[position] for position in largest_first(weights)]
        self._task_numbers = [number for number, _ in parts]
        # With fewer tasks than slots, each task gets several threads.
        threads = max(1, slots // max(len(parts), 1))
        tasks_per_process = -(-min(slots, len(parts)) // (processes or slots))
        self.tasks = tuple(
            replace(
                task,
                part=part,
                threads=threads,
                memory_mb=max(1, task.memory_mb // max(tasks_per_process, 1)),
            )
            for task, part in ((self._tasks[number], part) for number, part in parts)
        )
        """The tasks to run, in this order."""

    def ended(self, position: int, outcome: TaskOutcome) -> TaskOutcome | None:
        """Takes the outcome of one of `tasks`. Returns the outcome of its base file's entry when
        that is decided; None before that, and if it was already returned."""
        number = self._task_numbers[position]
        outcomes = self._outcomes[number]
        outcomes[self.tasks[position].part.number] = outcome
        if len(outcomes) < self._counts[number] or self._yielded[number]:
            return None
        joined_outcome = _joined(list(outcomes.values()))
        if joined_outcome is None:
            return None
        self._yielded[number] = True
        self._discard(number)
        return joined_outcome

    def has_ended(self, position: int) -> bool:
        """Whether the outcome of one of `tasks` is known."""
        return self.tasks[position].part.number in self._outcomes[self._task_numbers[position]]

    def undecided(self) -> "Schedule":
        """A schedule for the base files whose parts were all staged but not joined, because other
        builders changed the entry's content in between. Each is built anew in one part, without a
        deadline."""
        tasks = [
            replace(task, deadline=None)
            for task, outcomes, count, done in zip(
                self._tasks, self._outcomes, self._counts, self._yielded, strict=True
            )
            if not done and len(outcomes) == count
        ]
        return Schedule(tasks, slots=self._slots, processes=self._processes, in_parts=False)

    def give_up(self) -> None:
        """Removes the staged parts of undecided base files, including parts whose outcome was never
        taken."""
        for number, is_decided in enumerate(self._yielded):
            if not is_decided:
                self._discard(number)

    def _discard(self, number: int) -> None:
        if self._counts[number] == 1:
            return
        task = self._tasks[number]
        folder = entry_folder(task.due.index_type, task.due.base_file)
        try:
            Staging(task.storage, folder, task.build_id).discard()
        except (IndexServiceError, OSError) as error:
            log.warning(
                "Build %s: staged parts in %s are left to the cleaner: %s",
                *(task.build_id, folder, error),
            )


def _joined(outcomes: Sequence[TaskOutcome]) -> TaskOutcome | None:
    """The outcome of an entry from those of its parts; None if all are staged and not joined."""
    for status in _DECISIVE:
        for outcome in outcomes:
            if outcome.status is status:
                return replace(outcome, seconds=sum(each.seconds for each in outcomes))
    return None


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

    def _next(self, ended: _Ended) -> tuple[int, TaskOutcome] | None:
        """The next outcome, and its task's position; None after a while without any."""
        try:
            position, future = ended.get(timeout=self._patience)
        except Empty:
            return None
        return position, future.result()


def _put(ended: _Ended, position: int, future: "Future[TaskOutcome]") -> None:
    ended.put((position, future))
