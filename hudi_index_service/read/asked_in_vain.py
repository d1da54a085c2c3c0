"""What a query's slices that were asked tell of those that come after them: the base files of a
table are much like each other, and where look-ups in some of them ended in a scan, they mostly do
in the next one."""

from dataclasses import dataclass, field
from threading import Lock

from hudi_index_service.optimizer.expected import Expected

_AT_FIRST = 2  # slices in a row that were asked in vain, before one is not asked
_PART = 2  # of those that were scanned in a row, at most so large a part is scanned unasked at once
_AS_MANY = 0.5  # of the rows expected where it was in vain: fewer may be worth asking for


@dataclass(slots=True)
class AskedInVain:
    """Of one query. Safe to use from several threads.

    Slices are passed over in runs: half as many as have been scanned since an answer was last of
    use, then one is asked again. So of n slices about the logarithm of n are asked in vain; and
    where the others would not have been, at most a third of those scanned did not need it.
    """

    _scanned: int = 0
    _left: int = 0
    _fewest: float = float("inf")
    _lock: Lock = field(default_factory=Lock, repr=False)

    def would_be(self, expected: Expected | None, total: int) -> bool:
        """Whether a slice is better scanned without being asked; it counts as scanned then.

        Args:
            expected: Of the slice, from its manifests: where far fewer rows are expected than of
                the others, it is asked.
            total: Rows of the slice.
        """
        with self._lock:
            if not self._left or _part(expected, total) < _AS_MANY * self._fewest:
                return False
            self._left -= 1
            self._scanned += 1
            return True

    def tell(self, expected: Expected | None, total: int, *, in_vain: bool) -> None:
        """What came of asking a slice: whether it was scanned all the same."""
        with self._lock:
            if not in_vain:
                self._scanned, self._left, self._fewest = 0, 0, float("inf")
                return
            self._scanned += 1
            self._fewest = min(self._fewest, _part(expected, total))
            if self._scanned >= _AT_FIRST:
                self._left = self._scanned // _PART


def _part(expected: Expected | None, total: int) -> float:
    """The part of a slice's rows that is expected to match; none where nothing is expected."""
    return 0.0 if expected is None or not total else expected.rows.expected / total
