"""What an executor runs for a build's tasks, and what becomes of each from what became of its
parts."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from hudi_index_service.build.parts import Part, largest_first, part_counts
from hudi_index_service.build.staging import Staging
from hudi_index_service.build.task import BuildTask, TaskOutcome, TaskStatus
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.index.entry import entry_folder

log = logging.getLogger(__name__)

# What decides about a base file that was built in parts, before all else.
_DECISIVE = (
    TaskStatus.BUILT,
    TaskStatus.PRESENT,
    TaskStatus.UNWANTED,
    TaskStatus.GONE,
    TaskStatus.FAILED,
    TaskStatus.LEFT,
)


class Schedule:
    """The tasks of a build as an executor runs them: large base files in parts, and in the order in
    which they should begin, which is that given if there is a deadline, else the largest first.

    Args:
        tasks: One a base file.
        slots: Tasks that run at once.
        processes: Processes that these are spread over: the tasks of one share the memory that
            index writers may hold.
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
        self._of = [number for number, _ in parts]
        # Where there are fewer tasks than slots, each has several to itself.
        threads = max(1, slots // max(len(parts), 1))
        sharing = -(-min(slots, len(parts)) // (processes or slots))
        self.tasks = tuple(
            replace(
                task,
                part=part,
                threads=threads,
                memory_mb=max(1, task.memory_mb // max(sharing, 1)),
            )
            for task, part in ((self._tasks[number], part) for number, part in parts)
        )
        """What is to be run, in this order."""

    def ended(self, position: int, outcome: TaskOutcome) -> TaskOutcome | None:
        """Takes in how one of `tasks` ended. Returns how its base file's entry did, once that is
        decided; None while it is not, and for what was taken in before."""
        number = self._of[position]
        known = self._outcomes[number]
        known[self.tasks[position].part.number] = outcome
        if len(known) < self._counts[number] or self._yielded[number]:
            return None
        decided = _joined(list(known.values()))
        if decided is None:
            return None
        self._yielded[number] = True
        self._discard(number)
        return decided

    def has_ended(self, position: int) -> bool:
        """Whether it is known how one of `tasks` ended."""
        return self.tasks[position].part.number in self._outcomes[self._of[position]]

    def undecided(self) -> "Schedule":
        """The base files all of whose parts were staged and none joined, because other builders
        changed what the entry holds in between: built anew, each in one part, however late."""
        left = [
            replace(task, deadline=None)
            for task, known, count, done in zip(
                self._tasks, self._outcomes, self._counts, self._yielded, strict=True
            )
            if not done and len(known) == count
        ]
        return Schedule(left, slots=self._slots, processes=self._processes, in_parts=False)

    def give_up(self) -> None:
        """Removes what was staged for base files that were not decided: of a part whose outcome
        was never taken in, too."""
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
    """How an entry ended whose parts ended so; None if its parts are all there and not joined."""
    for status in _DECISIVE:
        for outcome in outcomes:
            if outcome.status is status:
                return replace(outcome, seconds=sum(each.seconds for each in outcomes))
    return None
