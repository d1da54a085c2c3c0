"""Costs of reading a relation of a Spark query: by Spark's own scan, or through the index by the
driver or by Spark tasks.

The work after reading costs the same each way and is left out.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from math import inf

from hudi_index_service.optimizer.cost.constants import (
    DRIVER_VALUES,
    LOG_ROWS_MS,
    MIB,
    ROW_GROUP_BYTES,
)
from hudi_index_service.optimizer.cost.model import CostModel
from hudi_index_service.optimizer.expected import RowEstimate
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan


class Reader(Enum):
    """The reader of a relation."""

    DRIVER = "driver"  #: the service, in the driver, which hands the rows to Spark
    TASKS = "tasks"  #: the service, in Spark tasks
    SPARK = "spark"  #: Spark's own scan


@dataclass(frozen=True, slots=True)
class SessionReaders:
    """What can read relations for a Spark session.

    Attributes:
        cores: The number of tasks that Spark runs in parallel.
        tasks: Whether these can read by index, which takes Python.
    """

    cores: int
    tasks: bool = True

    @property
    def most_values(self) -> float:
        """Values that the driver hands to Spark. Those that a process beside it reads come in
        parts, however many they are."""
        return DRIVER_VALUES if self.tasks else inf


@dataclass(frozen=True, slots=True)
class Work:
    """The work of reading some slices through the index.

    Attributes:
        ms: Milliseconds to read them in this process, one after the other.
        rows: The number of rows returned.
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
        spark_ms: Milliseconds of Spark's own scan.
        slices: The number of slices that the service would read.
        tasks: The most tasks that can share them.
        columns: The number of columns handed to Spark.
        readers: What can read for the session.
    """

    model: CostModel
    spark_ms: float
    slices: int
    tasks: int
    columns: int
    readers: SessionReaders

    @classmethod
    def of(
        cls, plan: QueryPlan, model: CostModel, columns: int, readers: SessionReaders
    ) -> "SparkCosts":
        """The costs of a plan's relation."""
        slices = [each for each in plan.slices if each.access is not Access.SKIP]
        spark_ms = _spark_ms(plan, model, readers.cores)
        return cls(model, spark_ms, len(slices), _most_tasks(slices), columns, readers)

    def reading(self, plan: SlicePlan, rows: float) -> Work:
        """The work of reading a slice by index if this many of its rows match."""
        number = round(rows)
        return Work(self.model.expected(plan, RowEstimate(number, rows, number)).index_ms, rows)

    def scanning(self, plans: Iterable[SlicePlan]) -> Work:
        """The work of reading slices that no index serves. Their matching rows are unknown and not
        counted. Log files are left out, since Spark reads them, too."""
        constants = self.model.constants
        return Work(sum(constants.scanning_ms(self._mib(each), 0) for each in plans))

    def merging(self, plans: Iterable[SlicePlan]) -> Work:
        """The work of merging the log rows of slices. The matching ones are not counted."""
        fixed, per_mib = LOG_ROWS_MS
        return Work(sum(fixed + per_mib * self._mib(each) for each in plans))

    def values(self, work: Work) -> float:
        """The number of values handed to Spark."""
        return work.rows * max(1, self.columns)

    def milliseconds(self, work: Work, reader: Reader) -> float:
        """Milliseconds that a reader takes."""
        if reader is Reader.SPARK:
            return self.spark_ms
        constants = self.model.constants
        handing = (
            work.rows * constants.handed_row_ms + self.values(work) * constants.handed_value_ms
        )
        if reader is Reader.DRIVER:
            return work.ms + constants.handing_ms + handing
        # Tasks read each slice twice: to estimate the result, and to return it.
        ms = 2 * work.ms + self.slices * constants.task_slice_ms + handing
        return constants.tasks_ms + ms / max(1, min(self.readers.cores, self.tasks))

    def _mib(self, plan: SlicePlan) -> float:
        return plan.file_slice.base_file.size * self.model.share / MIB


def _spark_ms(plan: QueryPlan, model: CostModel, cores: int) -> float:
    """Milliseconds of Spark's own scan. Spark opens all files except those of pruned partitions. Of
    files that statistics exclude it reads little more than the footer, which has the same
    statistics."""
    constants = model.constants
    files = [each for each in plan.slices if each.rule != "partition_pruning"]
    mib = plan.size(*(each for each in Access if each is not Access.SKIP)) * model.share / MIB
    ms = len(files) * constants.spark_file_ms + mib * constants.spark_mib_ms
    return constants.spark_scan_ms + ms / max(1, min(cores, _most_tasks(files)))


def _most_tasks(slices: Iterable[SlicePlan]) -> int:
    """The most tasks that can share slices: one for each row group, or for each with log files."""
    tasks = 0
    for each in slices:
        size = each.file_slice.base_file.size
        tasks += 1 if each.file_slice.log_files else max(1, size // ROW_GROUP_BYTES)
    return tasks
