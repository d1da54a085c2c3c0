"""Which of some values many files may hold."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Mask: TypeAlias = npt.NDArray[np.bool_]
Numbers: TypeAlias = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Routed:
    """For each of some files, the values that it may hold.

    Attributes:
        positions: Positions of values, those of each file one after the other, each once.
        starts, ends: Where the positions of each file begin and end.
    """

    positions: Numbers
    starts: Numbers
    ends: Numbers

    def of_file(self, file: int) -> Numbers:
        """The positions of the values that a file may hold."""
        return self.positions[self.starts[file] : self.ends[file]]

    def any(self) -> Mask:
        """Whether each file may hold one of the values."""
        may: Mask = self.starts < self.ends
        return may

    def of_files(self, files: npt.NDArray[np.int64]) -> "Routed":
        """The same for some files, by number."""
        return Routed(self.positions, self.starts[files], self.ends[files])

    @property
    def count(self) -> int:
        """The number of positions, over all files."""
        return int(np.sum(self.ends - self.starts, dtype=np.int64))

    def sorted_by(self, places: Numbers) -> tuple[Numbers, Numbers]:
        """Where the values of each file begin, and the end of the last one's; and these values,
        ascending for each file, as their places in another order.

        Args:
            places: The place of each value in that order.
        """
        files, positions = self.pairs()
        values = (files << 32) | places[positions]
        values.sort()
        return _starts(self.ends - self.starts), (values & 0xFFFF_FFFF).astype(np.int32)

    def pairs(self) -> tuple[npt.NDArray[np.int64], Numbers]:
        """The file of each position, in order, and the positions."""
        counts = self.ends - self.starts
        files = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        at = np.arange(len(files), dtype=np.int64) + (self.starts - _starts(counts)[:-1])[files]
        return files, self.positions[at]


def _starts(counts: npt.NDArray[np.integer[Any]]) -> Numbers:
    starts = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=starts[1:])
    return starts


def either(is_first: Mask, first: Routed, second: Routed) -> Routed:
    """For each file, the values of the first, where so stated, or else those of the second."""
    shift = np.int32(len(first.positions))
    return Routed(
        np.concatenate([first.positions, second.positions]),
        np.where(is_first, first.starts, second.starts + shift),
        np.where(is_first, first.ends, second.ends + shift),
    )
