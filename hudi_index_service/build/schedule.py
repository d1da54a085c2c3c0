"""Splits a build's tasks into the parts that an executor runs, and derives each task's outcome from
those of its parts."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from hudi_index_service.build.entry.parts import Part, largest_first, part_counts
from hudi_index_service.build.entry.staging import Staging
from hudi_index_service.build.entry.task import BuildTask, TaskOutcome, TaskStatus
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.index.metadata.folders import entry_folder

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
