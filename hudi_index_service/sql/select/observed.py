"""What the reading of a relation really took, added up in the driver and in Spark tasks."""

from typing import TYPE_CHECKING, NamedTuple

from pyspark.accumulators import AccumulatorParam

from hudi_index_service.read.statistics import ReadStatistics, SliceStatistics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


class _Sum(AccumulatorParam[Totals]):
    def zero(self, value: Totals) -> Totals:
        return Totals()

    def addInPlace(self, value1: Totals, value2: Totals) -> Totals:
        return Totals(*(one + other for one, other in zip(value1, value2, strict=True)))


class Observed:
    """Adds up what the reading of one relation takes; crosses to tasks, whose sums come back with
    their results. A task that Spark runs twice counts twice.

    Attributes:
        seconds: How long the driver read; None while it has not.
    """

    def __init__(self, spark: "SparkSession") -> None:
        self._sum = spark.sparkContext.accumulator(Totals(), _Sum())
        self.seconds: float | None = None

    def add(self, read: SliceStatistics) -> None:
        """Counts a slice that was read, here or in a task."""
        totals = Totals(read.rows_returned, read.pages, read.bytes_read, read.index_requests)
        self._sum.add(totals)

    def read_here(self, statistics: ReadStatistics, seconds: float) -> None:
        """Counts what the driver has read."""
        self.seconds = seconds
        for each in statistics.slices:
            self.add(each)

    @property
    def totals(self) -> Totals:
        """What has been read by now; to be asked in the driver."""
        return self._sum.value
