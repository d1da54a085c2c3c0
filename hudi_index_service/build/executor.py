"""Runs a build's tasks, large base files in parts. The local executor uses threads of this process;
`build.spark` runs the same task code in Spark executors."""

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue

from hudi_index_service.build.entry.parts import Part, Staging, part_counts
from hudi_index_service.build.entry.planning_facts import FactWriter
from hudi_index_service.build.entry.task import BuildTask, TaskOutcome, TaskStatus, run_task
from hudi_index_service.errors import IndexServiceError, NativeModuleMissing
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.manifest import entry_folder

log = logging.getLogger(__name__)

# The first of these that a part has decides the outcome of a base file built in parts.
_DECISIVE = (
    TaskStatus.BUILT,
    TaskStatus.PRESENT,
    TaskStatus.UNWANTED,
    TaskStatus.GONE,
    TaskStatus.FAILED,
    TaskStatus.LEFT,
)


@dataclass(slots=True)
class _Entry:
    """The entry of a base file.

    Attributes:
        parts: The number of parts in which it is built.
        outcomes: Number of a part → its outcome, once that is known.
        decided: Whether the entry's own outcome is known.
    """

    task: BuildTask
    parts: int
    outcomes: dict[int, TaskOutcome] = field(default_factory=dict)
    decided: bool = False

    def discard(self) -> None:
        """Removes the staged parts."""
        if self.parts == 1:
            return
        folder = entry_folder(self.task.due.index_type, self.task.due.base_file)
        try:
            Staging(self.task.storage, folder, self.task.build_id).discard()
        except (IndexServiceError, OSError) as error:
            log.warning(
                "Build %s: staged parts in %s are left to the cleaner: %s",
                *(self.task.build_id, folder, error),
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
        self._slots, self._processes = slots, processes
        least = min((task.part_bytes for task in tasks), default=1)
        sizes = [task.due.base_file.size for task in tasks]
        counts = part_counts(sizes, slots=slots if in_parts else 1, least=least)
        self._entries = [_Entry(task, count) for task, count in zip(tasks, counts, strict=True)]
        parts = [
            (entry, Part(n, entry.parts)) for entry in self._entries for n in range(entry.parts)
        ]
        if all(task.deadline is None for task in tasks):
            # An idle slot takes the largest remaining task. This order ends at most a third later
            # than the best one (Graham 1969).
            parts.sort(key=lambda each: -each[0].task.due.base_file.size / each[0].parts)
        self._entry_of = [entry for entry, _ in parts]
        # With fewer tasks than slots, each task gets several threads.
        threads = max(1, slots // max(len(parts), 1))
        tasks_per_process = -(-min(slots, len(parts)) // (processes or slots))
        self.tasks = tuple(
            replace(
                entry.task,
                part=part,
                threads=threads,
                memory_mb=max(1, entry.task.memory_mb // max(tasks_per_process, 1)),
            )
            for entry, part in parts
        )
        """The tasks to run, in this order."""

    def ended(self, position: int, outcome: TaskOutcome) -> TaskOutcome | None:
        """Takes the outcome of one of `tasks`. Returns the outcome of its base file's entry when
        that is decided; None before that, and if it was already returned."""
        entry = self._entry_of[position]
        entry.outcomes[self.tasks[position].part.number] = outcome
        if len(entry.outcomes) < entry.parts or entry.decided:
            return None
        joined_outcome = _joined(list(entry.outcomes.values()))
        if joined_outcome is None:
            return None
        entry.decided = True
        entry.discard()
        return joined_outcome

    def has_ended(self, position: int) -> bool:
        """Whether the outcome of one of `tasks` is known."""
        return self.tasks[position].part.number in self._entry_of[position].outcomes

    def undecided(self) -> "Schedule":
        """A schedule for the base files whose parts were all staged but not joined, because other
        builders changed the entry's content in between. Each is built anew in one part, without a
        deadline."""
        tasks = [
            replace(each.task, deadline=None)
            for each in self._entries
            if not each.decided and len(each.outcomes) == each.parts
        ]
        return Schedule(tasks, slots=self._slots, processes=self._processes, in_parts=False)

    def give_up(self) -> None:
        """Removes the staged parts of undecided base files, including parts whose outcome was never
        taken."""
        for each in self._entries:
            if not each.decided:
                each.discard()


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
        patience: Seconds without an outcome after which `run` yields None.
    """

    parallelism: int
    processes: int
    patience: float = 1.0

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
    """

    processes = 1

    def __init__(self, parallelism: int) -> None:
        self.parallelism = parallelism

    @property
    def cores(self) -> int:
        return min(self.parallelism, len(os.sched_getaffinity(0)))

    def run(self, tasks: Sequence[BuildTask]) -> Generator[TaskOutcome | None, None, None]:
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
        ended: SimpleQueue[tuple[int, TaskOutcome]] = SimpleQueue()

        def run(position: int, task: BuildTask) -> None:
            ended.put((position, run_task(task, facts)))

        with ThreadPoolExecutor(self.parallelism, thread_name_prefix="index-build") as pool:
            try:
                for position, task in enumerate(schedule.tasks):
                    pool.submit(run, position, task)
                for _ in schedule.tasks:
                    outcome = None
                    while outcome is None:
                        try:
                            outcome = ended.get(timeout=self.patience)
                        except Empty:
                            yield None
                    yield schedule.ended(*outcome)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
