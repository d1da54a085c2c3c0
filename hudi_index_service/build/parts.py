"""Base files in parts: a large one is built by several tasks, so that no core waits for another's.

Each part is a run of consecutive rows. How many there are follows from the sizes of all base files
and the tasks that run at once: one large and twenty small base files keep every core busy.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """One of `of` parts of a base file; `number` counts from 0."""

    number: int = 0
    of: int = 1

    @property
    def is_whole(self) -> bool:
        """Whether it is all of the file."""
        return self.of == 1

    def rows(self, total: int) -> range:
        """The rows of this part, of a base file with `total` rows."""
        return range(total * self.number // self.of, total * (self.number + 1) // self.of)


WHOLE = Part()

LEAST_BYTES = 192 * 2**20
"""Bytes of a part, at least, where the settings say nothing else."""


def part_counts(sizes: Sequence[int], *, slots: int, least: int) -> list[int]:
    """In how many parts base files are built so that `slots` tasks at once end at about one time.

    A file is split when it is larger than what each slot has to do: then its own parts are at most
    that large. A part costs a little (its own segments, and joining them), so none is smaller than
    `least`.

    Args:
        sizes: Bytes of the base files.
        slots: Tasks that run at once.
        least: Bytes of a part.
    """
    share = max(sum(sizes) / max(slots, 1), 1)
    return [max(1, min(-(-size // int(share) or 1), size // least, slots)) for size in sizes]


def largest_first(sizes: Sequence[float]) -> list[int]:
    """The positions of tasks in the order in which they should begin: whoever is idle takes the
    largest that is left. No order found in advance ends more than a third later than the best
    (Graham 1969)."""
    return sorted(range(len(sizes)), key=lambda position: -sizes[position])
