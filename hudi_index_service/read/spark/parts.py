"""Shares the slices of a plan among Spark tasks as Spark shares the files of a scan: by the bytes
to read. Several tasks read the row groups of a large base file (RFC-51's process A, step 1), one
task several small slices.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from math import inf
from typing import Any, NamedTuple

from pyspark.sql import SparkSession


class RowGroup(NamedTuple):
    """A row group, or a slice that one task reads whole.

    Attributes:
        rows: The number of its rows.
        bytes: Approximate bytes to be read of it.
    """

    rows: int
    bytes: float


class Part(NamedTuple):
    """What one task reads of a slice.

    Attributes:
        number: Its number among all parts.
        slice_number: The number of the slice among those that are not skipped.
        rows: The rows of the base file, from the start of a row group to the end of one; None for
            the whole slice.
    """

    number: int
    slice_number: int
    rows: range | None


class Weight(NamedTuple):
    """The approximate size of a slice for a query.

    Attributes:
        rows: The maximum number of rows (approximate for merged slices).
        row_bytes: The bytes of one row in memory; None if no row was sampled.
        groups: The row groups of its base file in order; one if the slice cannot be split.
        most_tasks: The number of tasks from which sharing the slice does not pay.
    """

    rows: int
    row_bytes: float | None
    groups: Sequence[RowGroup]
    most_tasks: float = inf

    @property
    def bytes(self) -> float:
        """Approximate bytes to be read."""
        return sum(each.bytes for each in self.groups)


@dataclass(frozen=True, slots=True)
class FileSplits:
    """How a session splits files: its settings `spark.sql.files.…`.

    Attributes:
        most_bytes: `maxPartitionBytes`, the most bytes that one of several tasks should read.
        open_bytes: `openCostInBytes`, the bytes that could be read in the time of opening a file.
        fewest_tasks: `minPartitionNum`, or the number of tasks that run at once. Fewer bytes are
            read by each task rather than by fewer tasks.
    """

    most_bytes: int
    open_bytes: int
    fewest_tasks: int

    @classmethod
    def of(cls, spark: SparkSession) -> "FileSplits":
        """The settings of a session."""
        session: Any = spark._jsparkSession
        settings = session.sessionState().conf()
        fewest = settings.filesMinPartitionNum()
        return cls(
            int(settings.filesMaxPartitionBytes()),
            int(settings.filesOpenCostInBytes()),
            int(fewest.get() if fewest.isDefined() else session.leafNodeDefaultParallelism()),
        )

    @property
    def whole_bytes(self) -> int:
        """Bytes up to which no slice is split, whatever others there are."""
        return min(self.most_bytes, self.open_bytes)

    def task_bytes(self, slices: Sequence[Weight]) -> float:
        """The most bytes that a task reads of these slices, as in Spark's
        `FilePartition.maxSplitBytes`."""
        total = sum(each.bytes + self.open_bytes for each in slices)
        return min(self.most_bytes, max(self.open_bytes, total / self.fewest_tasks))


def shared(slices: Sequence[Weight], splits: FileSplits) -> list[list[Part]]:
    """The parts that each task reads. Each row of each slice is in exactly one part.

    As in Spark's `FilePartition.getFilePartitions`, the largest parts come first, and a task gets
    more parts until it has enough to read.
    """
    most = splits.task_bytes(slices)
    parts = [
        (size, slice_number, rows)
        for slice_number, each in enumerate(slices)
        for size, rows in _split(each, most)
    ]
    parts.sort(key=lambda part: part[0], reverse=True)
    tasks: list[list[Part]] = []
    task_bytes = 0.0
    for number, (size, slice_number, rows) in enumerate(parts):
        if not tasks or task_bytes + size > most:
            tasks.append([])
            task_bytes = 0.0
        tasks[-1].append(Part(number, slice_number, rows))
        task_bytes += size + splits.open_bytes
    return tasks


def _split(weight: Weight, most: float) -> Iterator[tuple[float, range | None]]:
    """The parts of a slice: the bytes to be read and the rows. A row group belongs to the split
    that its middle lies in."""
    groups = weight.groups
    split_bytes = max(most, weight.bytes / weight.most_tasks, 1.0)
    ends = accumulate(each.bytes for each in groups)
    splits = [
        int((end - each.bytes / 2) // split_bytes) for each, end in zip(groups, ends, strict=True)
    ]
    if splits[0] == splits[-1]:
        yield weight.bytes, None
        return
    start = 0
    for _, members in groupby(zip(splits, groups, strict=True), key=lambda each: each[0]):
        part = [group for _, group in members]
        stop = start + sum(each.rows for each in part)
        yield sum(each.bytes for each in part), range(start, stop)
        start = stop
