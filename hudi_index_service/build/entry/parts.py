"""Splits large base files into parts that several tasks build, so that no core is left waiting.

Each part is a run of consecutive rows. The number of parts depends on the sizes of all base files
and the number of concurrent tasks, so that one large and twenty small base files keep every core
busy.
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
        """Whether the part is the whole file."""
        return self.of == 1

    def rows(self, total: int) -> range:
        """The rows of this part, of a base file with `total` rows."""
        return range(total * self.number // self.of, total * (self.number + 1) // self.of)


WHOLE = Part()

LEAST_BYTES = 192 * 2**20
"""The default minimum size of a part in bytes."""


def part_counts(sizes: Sequence[int], *, slots: int, least: int) -> list[int]:
    """The number of parts per base file so that `slots` concurrent tasks end at about one time.

    A file larger than one slot's share of the work is split into parts no larger than that share.
    Each part has a cost (its own segments, and joining them), so none is smaller than `least`.

    Args:
        sizes: The sizes of the base files in bytes.
        slots: The number of concurrent tasks.
        least: The minimum size of a part in bytes.
    """
    share = max(sum(sizes) / max(slots, 1), 1)
    return [max(1, min(-(-size // int(share) or 1), size // least, slots)) for size in sizes]


def largest_first(sizes: Sequence[float]) -> list[int]:
    """The positions of tasks in the order in which they should begin: an idle slot takes the
    largest remaining task. This order ends at most a third later than the best one (Graham
    1969)."""
    return sorted(range(len(sizes)), key=lambda position: -sizes[position])
