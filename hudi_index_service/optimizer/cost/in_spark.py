"""What a relation of a Spark query costs: read by Spark's own scan, or through the index, by the
driver or by Spark tasks.

What the query does with the rows afterwards costs the same each way, and is left out.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum

from hudi_index_service.optimizer.cost.model import MIB, CostModel
from hudi_index_service.optimizer.expected import RowEstimate
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan

MARGIN = 2.0
"""So many times as long has Spark's own scan to take to be passed by: the scans of a query's other
relations go on beside it, so that leaving one out saves less than it takes alone, and by how much
is not known."""


class Reader(Enum):
    """Who reads a relation."""

    DRIVER = "driver"  #: the service, in the driver, which hands the rows to Spark
    TASKS = "tasks"  #: the service, in Spark tasks
    SPARK = "spark"  #: Spark's own scan


@dataclass(frozen=True, slots=True)
class Work:
    """What reading some slices through the index takes.

    Attributes:
        ms: To read them here, one after the other.
        rows: That come of it.
    """

    ms: float = 0.0
    rows: float = 0.0

    def __add__(self, other: "Work") -> "Work":
        return Work(self.ms + other.ms, self.rows + other.rows)

    def __sub__(self, other: "Work") -> "Work":
        return Work(self.ms - other.ms, self.rows - other.rows)

    def __mul__(self, times: float) -> "Work":
        return Work(times * self.ms, times * self.rows)


NOTHING = Work()


@dataclass(frozen=True, slots=True)
class SparkCosts:
    """Costs of one relation. Make it by `of`.

    Attributes:
        spark_ms: What Spark's own scan takes.
        slices: That the service would read.
        columns: That are handed to Spark.
        cores: Tasks that Spark runs at once.
    """

    model: CostModel
    spark_ms: float
    slices: int
    columns: int
    cores: int

    @classmethod
    def of(cls, plan: QueryPlan, model: CostModel, columns: int, cores: int) -> "SparkCosts":
        """The costs of a plan's relation."""
        slices = len(plan.slices) - plan.count(Access.SKIP)
        return cls(model, _spark_ms(plan, model, cores), slices, columns, cores)

    def reading(self, plan: SlicePlan, rows: float) -> Work:
        """What it takes to read a slice by index if so many of its rows match."""
        number = round(rows)
        return Work(self.model.expected(plan, RowEstimate(number, rows, number)).index_ms, rows)

    def scanning(self, plans: Iterable[SlicePlan]) -> Work:
        """What it takes to read slices that no index serves. How many of their rows match is not
        known, and not counted; of log files Spark has the same to read."""
        known, ms = self.model.constants, 0.0
        for each in plans:
            ms += known.scanning_ms(self._mib(each), 0)
        return Work(ms)

    def values(self, work: Work) -> float:
        """How many values are handed to Spark."""
        return work.rows * max(1, self.columns)

    def cheapest(self, work: Work, among: Collection[Reader]) -> Reader:
        """Who of some readers reads a relation for the least; of equals the first one."""
        return min(among, key=lambda reader: self.milliseconds(work, reader))

    def milliseconds(self, work: Work, reader: Reader) -> float:
        """What one of them takes; of Spark's own scan so much that to pass it by, another one has
        to take clearly less."""
        if reader is Reader.SPARK:
            return self.spark_ms / MARGIN
        known = self.model.constants
        handing = work.rows * known.handed_row_ms + self.values(work) * known.handed_value_ms
        if reader is Reader.DRIVER:
            return work.ms + known.handing_ms + handing
        # Tasks read each slice twice: to weigh what comes, and to hand it over.
        ms = 2 * work.ms + self.slices * known.task_slice_ms + handing
        return known.tasks_ms + ms / max(1, min(self.cores, self.slices))

    def _mib(self, plan: SlicePlan) -> float:
        base_file = plan.file_slice.base_file
        return 0.0 if base_file is None else base_file.size * self.model.share / MIB


def _spark_ms(plan: QueryPlan, model: CostModel, cores: int) -> float:
    """Spark opens all files but those of other partitions; of files that statistics exclude it
    reads hardly more than the footer, which has the same statistics."""
    known = model.constants
    files = [each for each in plan.slices if each.rule != "partition_pruning"]
    ms = len(files) * known.spark_file_ms
    for each in files:
        if each.access is not Access.SKIP and each.file_slice.base_file is not None:
            ms += each.file_slice.base_file.size * model.share / MIB * known.spark_mib_ms
    return known.spark_scan_ms + ms / max(1, min(cores, len(files)))
