"""The measured cost of reading a relation, summed in the driver from its own reads or from the
reports of Spark tasks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hudi_index_service.read.statistics import ReadStatistics, SliceStatistics


class Totals(NamedTuple):
    """The amounts read.

    Attributes:
        rows: Rows that matched the relation's conditions.
        pages: Data pages read by row id.
        bytes: Compressed bytes of base files.
        requests: Requests for index data to a remote store.
    """

    rows: int = 0
    pages: int = 0
    bytes: int = 0
    requests: int = 0


@dataclass(slots=True)
class Observed:
    """Sums the cost of reading one relation. A task that Spark runs twice counts twice.

    Attributes:
        totals: The amounts read so far.
        milliseconds: Elapsed time for the driver; for tasks the sum over the slices, many of which
            may be read concurrently; None while nothing has been read.
    """

    totals: Totals = field(default_factory=Totals)
    milliseconds: float | None = None

    def read_here(self, statistics: ReadStatistics, seconds: float) -> None:
        """Adds what the driver has read."""
        for each in statistics.slices:
            self._add(each)
        self.milliseconds = 1000 * seconds

    def read_by_task(self, statistics: SliceStatistics) -> None:
        """Adds a slice that a task has read."""
        self._add(statistics)
        self.milliseconds = (self.milliseconds or 0.0) + statistics.ms

    def to_dict(self) -> dict[str, float | None]:
        """The totals by name, and the milliseconds."""
        return {**self.totals._asdict(), "milliseconds": self.milliseconds}

    @classmethod
    def from_dict(cls, known: Mapping[str, Any]) -> "Observed":
        """The inverse of `to_dict`."""
        totals = Totals(*(int(known[name]) for name in Totals._fields))
        return cls(totals, known["milliseconds"])

    def _add(self, statistics: SliceStatistics) -> None:
        amounts = (
            statistics.rows_returned,
            statistics.pages,
            statistics.bytes_read,
            statistics.index_requests,
        )
        self.totals = Totals(
            *(total + amount for total, amount in zip(self.totals, amounts, strict=True))
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """Receives what is read for a relation.

    Attributes:
        statistics: Of the driver's read.
        observed: The cost, whoever reads; None if nobody wants it.
    """

    statistics: ReadStatistics = field(default_factory=ReadStatistics)
    observed: Observed | None = None

    @property
    def by_task(self) -> Callable[[SliceStatistics], None] | None:
        """Receives what a task has read of a slice; None if nobody wants it."""
        return None if self.observed is None else self.observed.read_by_task
