"""Runs a plan over its slices, in slice order, and adds up what was read."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa
from pyroaring import BitMap

from hudi_index_service.errors import RowIdsUnavailable
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.read.slice_reader import SliceReader
from hudi_index_service.read.statistics import ReadStatistics, SliceStatistics

Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(slots=True)
class Execution:
    """One run of a query.

    Attributes:
        statistics: What has been read so far; complete when the run is.
    """

    plan: QueryPlan
    reader: SliceReader
    statistics: ReadStatistics = field(default_factory=ReadStatistics)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The result, slice by slice: one batch is held at a time. Empty batches are left out."""
        for slice_plan in self.plan.slices:
            for batch in self.reader.batches(slice_plan, self._statistics(slice_plan)):
                if batch.num_rows:
                    yield batch

    def table(self) -> pa.Table:
        """The whole result, several slices read at once."""
        planned = [(each, self._statistics(each)) for each in self.plan.slices]

        def read(job: tuple[SlicePlan, SliceStatistics]) -> list[pa.RecordBatch]:
            return [batch for batch in self.reader.batches(*job) if batch.num_rows]

        results = self._on_all(read, planned)
        batches = [batch for result in results for batch in result]
        # Batches of older files may say "not null"; the result's schema is the query's.
        schema = pa.schema([f.with_nullable(True) for f in self.reader.query.output])
        return pa.Table.from_batches([_with_schema(batch, schema) for batch in batches], schema)

    def count(self) -> int:
        """The number of matching rows; by the index alone where its answer is exact."""
        planned = [(each, self._statistics(each)) for each in self.plan.slices]
        return sum(self._on_all(lambda job: self._count(*job), planned))

    def exists(self) -> bool:
        """Whether any row matches; stops at the first slice that has one."""
        return any(self._any(each, self._statistics(each)) for each in self.plan.slices)

    def row_ids(self) -> dict[str, BitMap]:
        """The row ids of the matching rows, by base file path; files without any are left out.

        Raises:
            RowIdsUnavailable: a slice has log files.
        """
        found: dict[str, BitMap] = {}
        for slice_plan in self.plan.slices:
            if slice_plan.access is Access.MERGE:
                raise RowIdsUnavailable(f"{slice_plan.file_slice.name} has log files.")
            rows = self.reader.matching_rows(slice_plan, self._statistics(slice_plan))
            if rows:
                found[slice_plan.file_slice.name] = rows
        return found

    def _count(self, slice_plan: SlicePlan, statistics: SliceStatistics) -> int:
        settled = self.reader.settled_rows(slice_plan, statistics)
        if settled is not None:
            statistics.rows_returned = len(settled)
            return len(settled)
        return sum(batch.num_rows for batch in self.reader.batches(slice_plan, statistics))

    def _any(self, slice_plan: SlicePlan, statistics: SliceStatistics) -> bool:
        settled = self.reader.settled_rows(slice_plan, statistics)
        if settled is not None:
            return bool(settled)
        return any(batch.num_rows for batch in self.reader.batches(slice_plan, statistics))

    def _statistics(self, slice_plan: SlicePlan) -> SliceStatistics:
        statistics = SliceStatistics(slice_plan.file_slice.name, slice_plan.access)
        self.statistics.slices.append(statistics)
        return statistics

    def _on_all(self, work: Callable[[Job], Result], jobs: list[Job]) -> list[Result]:
        if len(jobs) < 2:
            return [work(job) for job in jobs]
        with ThreadPoolExecutor(self.reader.settings.read.parallelism, "index-read") as pool:
            return list(pool.map(work, jobs))


def _with_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)
