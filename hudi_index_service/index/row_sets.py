"""Row ids that one call returns for many entries."""

from array import array
from collections.abc import Iterable

from pyroaring import BitMap


def row_sets(is_asked: Iterable[bool], counts: Iterable[int], rows: bytes) -> list[BitMap | None]:
    """The rows of each entry; None for one that was not asked, and for a negative count.

    Args:
        is_asked: For each entry, whether the call asked it.
        counts: The number of rows of each entry that was asked.
        rows: The row ids of all these, one after the other, as unsigned 32-bit integers.
    """
    sets: list[BitMap | None] = []
    left, end = iter(counts), 0
    for each in is_asked:
        count = next(left) if each else -1
        if count < 0:
            sets.append(None)
            continue
        start, end = end, end + 4 * count
        # The fastest way into a bitmap.
        sets.append(BitMap(array("I", rows[start:end])) if count else BitMap())
    return sets
