"""Runs a plan over its slices, in slice order, and adds up what was read."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from hudi_index_service.errors import RowIdsUnavailable
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.read.counted_values import counted_values
from hudi_index_service.read.slice_reader import SliceReader
from hudi_index_service.read.statistics import ReadStatistics, SliceStatistics

Job: TypeAlias = tuple[SlicePlan, SliceStatistics]
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

    @property
    def schema(self) -> pa.Schema:
        """The result's: of the columns asked for, in the table's types, all nullable, whatever
        batches of older files say."""
        return pa.schema([each.with_nullable(True) for each in self.reader.query.output])

    def batches(self, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """The result, slice by slice: one batch is held at a time. Empty batches are left out.
        With `limit`, what is read at once suits somebody who takes so many rows."""
        schema = self.schema
        reader = replace(self.reader, limit=limit)
        for slice_plan in self.plan.slices:
            for batch in reader.batches(slice_plan, self._statistics(slice_plan)):
                if batch.num_rows:
                    yield _with_schema(batch, schema)

    def table(self, limit: int | None = None) -> pa.Table:
        """The whole result, several slices read at once; with `limit`, at most so many rows: no
        more slices are begun than it takes, but for some ahead of need."""
        reader = replace(self.reader, limit=limit)

        def read(job: Job) -> list[pa.RecordBatch]:
            batches = (batch for batch in reader.batches(*job) if batch.num_rows)
            return list(batches if limit is None else _first(batches, limit))

        if limit is None:
            results: Iterable[list[pa.RecordBatch]] = self._on_all(read, self._jobs())
        else:
            results = self._ahead(read, self._jobs())
        schema = self.schema
        found = (_with_schema(batch, schema) for result in results for batch in result)
        return pa.Table.from_batches(found if limit is None else _first(found, limit), schema)

    def count(self) -> int:
        """The number of matching rows; by the index alone where its answer is exact."""
        return sum(self._on_all(lambda job: self._count(*job), self._jobs()))

    def value_counts(self, column: str) -> "Counter[str | None]":
        """How many matching rows have each value of a text column, which is the only one that the
        query asks for; by the index alone where its answer is exact and it holds the values."""
        found: Counter[str | None] = Counter()
        for each in self._on_all(lambda job: self._value_counts(column, *job), self._jobs()):
            found.update(each)
        return found

    def exists(self) -> bool:
        """Whether any row matches; no slice is begun after one that has one."""
        return any(self._ahead(lambda job: self._any(*job), self._jobs()))

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
        settled = self._settled(slice_plan, statistics)
        if settled is not None:
            statistics.rows_returned = len(settled)
            return len(settled)
        return sum(batch.num_rows for batch in self.reader.batches(slice_plan, statistics))

    def _value_counts(
        self, column: str, slice_plan: SlicePlan, statistics: SliceStatistics
    ) -> "Counter[str | None]":
        settled = self._settled(slice_plan, statistics)
        if settled is not None:
            counts = counted_values(self.reader.pool, slice_plan, column, settled, statistics)
            if counts is not None:
                statistics.rows_returned = len(settled)
                return counts
        found: Counter[str | None] = Counter()
        for batch in self.reader.batches(slice_plan, statistics):
            for each in pc.value_counts(batch.column(column)):
                found[each["values"].as_py()] += each["counts"].as_py()
        return found

    def _settled(self, slice_plan: SlicePlan, statistics: SliceStatistics) -> BitMap | None:
        if not self.reader.may_settle(slice_plan):
            return None
        return self.reader.settled_rows(slice_plan, statistics)

    def _any(self, slice_plan: SlicePlan, statistics: SliceStatistics) -> bool:
        settled = self._settled(slice_plan, statistics)
        if settled is not None:
            return bool(settled)
        reader = replace(self.reader, limit=1)
        return any(batch.num_rows for batch in reader.batches(slice_plan, statistics))

    def _statistics(self, slice_plan: SlicePlan) -> SliceStatistics:
        statistics = SliceStatistics(slice_plan.file_slice.name, slice_plan.access)
        self.statistics.slices.append(statistics)
        return statistics

    def _jobs(self) -> list[Job]:
        """The slices that are read at all, each with its statistics."""
        every = [(each, self._statistics(each)) for each in self.plan.slices]
        return [(each, statistics) for each, statistics in every if each.access is not Access.SKIP]

    def _ahead(self, work: Callable[[Job], Result], jobs: list[Job]) -> Iterator[Result]:
        """The results in order, computed as they are asked for: at first one at a time, then more
        and more ahead of need, since the first ones were not enough."""
        most, window, todo = self.reader.settings.read.parallelism, 1, iter(jobs)
        with ThreadPoolExecutor(min(most, len(jobs) or 1), "index-read") as pool:
            running: deque[Future[Result]] = deque()
            try:
                while True:
                    ahead = islice(todo, window - len(running))
                    running.extend(pool.submit(work, job) for job in ahead)
                    if not running:
                        return
                    yield running.popleft().result()
                    window = min(2 * window, most)
            finally:
                for each in running:
                    each.cancel()

    def _on_all(self, work: Callable[[Job], Result], jobs: list[Job]) -> list[Result]:
        most = min(self.reader.settings.read.parallelism, len(jobs))
        if most < 2:
            return [work(job) for job in jobs]
        with ThreadPoolExecutor(most, "index-read") as pool:
            return list(pool.map(work, jobs))


def _first(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    left = limit
    while left > 0:
        batch = next(batches, None)
        if batch is None:
            return
        yield batch.slice(0, left)
        left -= min(left, batch.num_rows)


def _with_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if not schema.names:
        return batch  # made of its columns, it would have no rows
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)
