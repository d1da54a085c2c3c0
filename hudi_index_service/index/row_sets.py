"""Row ids that one call returns for many entries."""

from array import array
from collections.abc import Iterable

from pyroaring import BitMap


def row_sets(counts: Iterable[int], rows: bytes) -> list[BitMap | None]:
    """The rows of each entry; None for a negative count.

    Args:
        counts: The number of rows of each entry.
        rows: The row ids of all entries, one after the other, as unsigned 32-bit integers.
    """
    sets: list[BitMap | None] = []
    end = 0
    for count in counts:
        if count < 0:
            sets.append(None)
            continue
        start, end = end, end + 4 * count
        # The fastest way into a bitmap.
        sets.append(BitMap(array("I", rows[start:end])) if count else BitMap())
    return sets
