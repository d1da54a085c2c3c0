"""What the reading of a relation really took, added up in the driver: of what it read itself, or of
what Spark tasks told."""

from dataclasses import dataclass, field
from typing import NamedTuple

from hudi_index_service.read.statistics import ReadStatistics, SliceStatistics


class Totals(NamedTuple):
    """What was read.

    Attributes:
        rows: Rows that the relation's conditions left.
        pages: Data pages read by row id.
        bytes: Of base files, compressed.
        requests: For index data, that a remote store was sent.
    """

    rows: int = 0
    pages: int = 0
    bytes: int = 0
    requests: int = 0


@dataclass(slots=True)
class Observed:
    """Adds up what the reading of one relation takes. A task that Spark runs twice counts twice.

    Attributes:
        totals: What has been read by now.
        milliseconds: How long that took: by the clock where the driver read, of tasks the sum over
            the slices, many of which may have been read at once; None while nothing was read.
    """

    totals: Totals = field(default_factory=Totals)
    milliseconds: float | None = None

    def read_here(self, statistics: ReadStatistics, seconds: float) -> None:
        """Counts what the driver has read."""
        for each in statistics.slices:
            self._add(each)
        self.milliseconds = 1000 * seconds

    def read_by_task(self, read: SliceStatistics) -> None:
        """Counts a slice that a task has read."""
        self._add(read)
        self.milliseconds = (self.milliseconds or 0.0) + read.ms

    def _add(self, read: SliceStatistics) -> None:
        more = (read.rows_returned, read.pages, read.bytes_read, read.index_requests)
        self.totals = Totals(*(one + other for one, other in zip(self.totals, more, strict=True)))
