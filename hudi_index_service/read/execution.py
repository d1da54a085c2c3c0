"""Runs a plan over its slices, in slice order, and adds up what was read."""

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from time import perf_counter_ns

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from hudi_index_service.errors import RowIdsUnavailable
from hudi_index_service.optimizer.history.history import History
from hudi_index_service.optimizer.history.shape import query_shape
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.read.parallel import Job, Result, are_fast, map_slices, mapped, prefetch
from hudi_index_service.read.recording import observation
from hudi_index_service.read.slices.counting import value_counts_of
from hudi_index_service.read.slices.found_rows import FoundRows, in_calls, matching_log_rows
from hudi_index_service.read.slices.open_slices import NO_ROW_FOUND
from hudi_index_service.read.slices.slice_reader import SliceReader, is_merged_in_part
from hudi_index_service.read.statistics import ReadStatistics, SliceStatistics

log = logging.getLogger(__name__)

_CORES = os.cpu_count() or 1
_LOOKED_UP = 128  # slices whose row ids and footers are held at a time


class RowIds(dict[str, BitMap]):
    """Row ids by the path of their base file.

    Attributes:
        in_log_files: The number of matching rows besides, which are in log files and have no row
            id.
    """

    in_log_files: int = 0


@dataclass(slots=True)
class Execution:
    """One run of a query.

    Attributes:
        statistics: What has been read so far; complete when the run is.
        history: Records the run when it ends; None to record nothing.
    """

    plan: QueryPlan
    reader: SliceReader
    statistics: ReadStatistics = field(default_factory=ReadStatistics)
    history: History | None = None
    _started: int = field(default_factory=perf_counter_ns)

    @property
    def schema(self) -> pa.Schema:
        """The result's schema: the output columns with the table's types, all nullable even if
        older files declare them otherwise."""
        return pa.schema([each.with_nullable(True) for each in self.reader.query.output])

    def narrowed(self, output: pa.Schema) -> "Execution":
        """The same run for a narrowed query; see `Query.narrowed`."""
        query = self.reader.query.narrowed(output)
        return replace(self, reader=replace(self.reader, query=query))

    def batches(self, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """The result, slice by slice, one batch in memory at a time. Empty batches are left out.
        With `limit`, the amount read at once suits a caller that takes this many rows."""
        schema = self.schema
        reader = replace(self.reader, limit=limit)
        self._begin()
        whole = False
        try:
            for job in self._possible_slices():
                for batch in _batches(reader, *job):
                    if batch.num_rows:
                        yield _with_schema(batch, schema)
            whole = limit is None
        except GeneratorExit:  # the caller stopped early
            self._end(whole=False)
            raise
        self._end(whole=whole)

    def table(self, limit: int | None = None) -> pa.Table:
        """The whole result, or its first `limit` rows; several slices are read at once. With
        `limit`, no more slices are started than needed, except for some prefetched ones."""
        reader = replace(self.reader, limit=limit)

        def first(job: Job) -> list[pa.RecordBatch]:
            assert limit is not None
            batches = (batch for batch in _batches(reader, *job) if batch.num_rows)
            return list(_first(batches, limit))

        self._begin()
        if limit is None:
            results: Iterable[list[pa.RecordBatch]] = self._all_rows()
        else:
            results = prefetch(first, self._jobs(), reader.settings.read.parallelism)
        schema = self.schema
        batches = (batch for result in results for batch in result if batch.num_rows)
        result_batches = (_with_schema(batch, schema) for batch in batches)
        rows = pa.Table.from_batches(
            result_batches if limit is None else _first(result_batches, limit), schema
        )
        self._end(whole=limit is None)
        return rows

    def _all_rows(self) -> list[list[pa.RecordBatch]]:
        """The matching rows, in slice order. Some hundred slices of a local table are looked up at
        a time; then the rows of many are read by one call."""
        reader, jobs = self.reader, self._jobs()
        if not reader.table.storage.is_local:
            return self._map_slices(lambda job: list(_batches(reader, *job)), jobs)
        batches: list[list[pa.RecordBatch]] = []
        for start in range(0, len(jobs), _LOOKED_UP):
            found = self._looked_up(jobs[start : start + _LOOKED_UP])
            batches.append(list(matching_log_rows(found)))
            groups = in_calls([replace(x, log_rows=()) if x.log_rows else x for x in found])
            may_be_fast = are_fast(group[0].plan for group in groups if len(group) == 1)
            most = reader.settings.read.parallelism
            batches += mapped(reader.matching, groups, most, may_be_fast=may_be_fast)
        return batches

    def _looked_up(self, jobs: list[Job]) -> list[FoundRows]:
        def find(job: Job) -> FoundRows:
            with job[1].timed():
                return self.reader.find(*job)

        looked_up = [job for job in jobs if _is_looked_up(job[0])]
        found = iter(self._map_slices(find, looked_up))
        return [next(found) if _is_looked_up(job[0]) else find(job) for job in jobs]

    def count(self) -> int:
        """The number of matching rows, from the index alone where its answer is exact."""
        self._begin()
        jobs, exactly = self._jobs(), list[FoundRows]()

        def work(job: Job) -> int:
            if self.reader.is_index_only(job[0]):
                with job[1].timed():
                    known = self.reader.exact_count(*job)
                    if known is not None:
                        return known
                    exact = self.reader.exact_rows(*job, if_cheaper=True)
                if exact is not None:
                    exactly.append(exact)
                    return _counted(exact)
            return sum(batch.num_rows for batch in _batches(self.reader, *job))

        number: int = sum(self._map_slices(work, jobs, counting=True))
        number += sum(batch.num_rows for batch in matching_log_rows(exactly))
        self._end(whole=True)
        return number

    def value_counts(self, column: str) -> "Counter[bytes | None]":
        """The number of matching rows per value of a text column, the query's only output column;
        from the index alone where its answer is exact and it holds the values. Texts are bytes,
        since Spark also has texts that are not UTF-8."""
        self._begin()
        counts: Counter[bytes | None] = Counter()

        def work(job: Job) -> "Counter[bytes | None]":
            return self._value_counts(column, *job)

        for each in self._map_slices(work, self._jobs(), counting=True):
            counts.update(each)
        self._end(whole=True)
        return counts

    def exists(self) -> bool:
        """Whether any row matches; no slice is started after the first match."""
        self._begin()
        most = self.reader.settings.read.parallelism
        # Log rows are few, so others are more likely to match.
        jobs = sorted(self._jobs(), key=lambda job: job[0].access is Access.LOGS)
        found = any(prefetch(lambda job: self._any(*job), jobs, most))
        self._end(whole=False)
        return found

    def row_ids(self) -> RowIds:
        """The row ids of the matching rows, by base file path; files without any are left out.

        Raises:
            RowIdsUnavailable: a slice with log files has no base file, or has to be merged whole.
        """
        self._begin()
        row_ids = RowIds()
        for slice_plan, statistics in self._possible_slices():
            with statistics.timed():
                found = self._found(slice_plan, statistics)
            if found.rows:
                row_ids[slice_plan.file_slice.name] = found.rows
            _counted(found)
            row_ids.in_log_files += sum(batch.num_rows for batch in matching_log_rows([found]))
        self._end(whole=True)
        return row_ids

    def _found(self, slice_plan: SlicePlan, statistics: SliceStatistics) -> FoundRows:
        """The matching rows of the base file that no log file replaces, and the log rows."""
        name = slice_plan.file_slice.name
        if slice_plan.file_slice.base_file is None:
            raise RowIdsUnavailable(f"{name} has log files and no base file.")
        found = self.reader.matching_rows(slice_plan, statistics)
        if found is None:
            raise RowIdsUnavailable(f"{name} has log files: {statistics.note}.")
        return found

    def _begin(self) -> None:
        self._started = perf_counter_ns()

    def _end(self, *, whole: bool) -> None:
        """Logs a run that has ended and records it in the history, both without literals, since
        search terms must not appear in either.

        Args:
            whole: Whether all matching rows were read, or counted.
        """
        ms = (perf_counter_ns() - self._started) / 1e6
        if log.isEnabledFor(logging.INFO):
            self._log(ms)
        if self.history is None:
            return
        threads = min(_CORES, self.reader.settings.read.parallelism)
        begun = self.statistics.begun
        slices_ms = sum(each.ms for each in begun.values())
        pace = min(1.0, ms * threads / slices_ms) if slices_ms else 1.0
        read = [(self.plan.slices[number], each) for number, each in begun.items()]
        measurement = observation(self.plan, read, whole=whole, pace=pace)
        if measurement is not None:
            self.history.record(self.plan.table, measurement)

    def _log(self, ms: float) -> None:
        plan, statistics = self.plan, self.statistics
        columns = set() if plan.predicate is None else plan.predicate.columns()
        log.info(
            "Query on %s: %d slices by index, %d scanned, %d merged, %d skipped; %d rows of %d "
            "read, %d pages, %d bytes, %.1f ms; shape %s.",
            ", ".join(sorted(columns)) or "no column",
            *(statistics.count(each) for each in (Access.INDEX, Access.SCAN, Access.MERGE)),
            plan.count(Access.SKIP),
            statistics.rows_returned,
            statistics.rows_checked,
            statistics.pages,
            statistics.bytes_read,
            ms,
            plan.shape or query_shape(plan.predicate),
        )

    def _value_counts(
        self, column: str, slice_plan: SlicePlan, statistics: SliceStatistics
    ) -> "Counter[bytes | None]":
        pool = self.reader.pool
        if self.reader.is_index_only(slice_plan):
            with statistics.timed():
                exact = self.reader.exact_rows(slice_plan, statistics, if_cheaper=True)
                counts = None if exact is None else value_counts_of(pool, column, exact)
            if exact is not None and counts is not None:
                _counted(exact)
                in_logs = _counts_of(column, matching_log_rows([exact]))
                return in_logs + Counter({_utf8(each): number for each, number in counts.items()})
        return _counts_of(column, _batches(self.reader, slice_plan, statistics))

    def _any(self, slice_plan: SlicePlan, statistics: SliceStatistics) -> bool:
        if self.reader.is_index_only(slice_plan):
            with statistics.timed():
                exact = self.reader.exact_base_rows(slice_plan, statistics, if_cheaper=True)
                if exact is not None and self.reader.some_count(exact):
                    return True
                exact = None if exact is None else self.reader.with_log_rows(exact)
            if exact is not None:
                found = exact.rows or any(each.num_rows for each in matching_log_rows([exact]))
                return bool(found)
        reader = replace(self.reader, limit=1)
        return any(batch.num_rows for batch in _batches(reader, slice_plan, statistics))

    def _jobs(self) -> list[Job]:
        """The slices to be read, each with its statistics."""
        return list(self._possible_slices())

    def _possible_slices(self) -> Iterator[Job]:
        """The slices that may have matching rows, in order, each with its statistics."""
        plans, left = self.plan.slices, self.plan.left()
        empty = self.reader.look_up_together([plans[number] for number in left])
        self.statistics.start(plans)
        for position, number in enumerate(left):
            plan, statistics = plans[number], self.statistics.begin(number)
            if position in empty:
                statistics.candidates = 0
                plan = plan.without_base_rows("its entry has no such row", NO_ROW_FOUND)
            if plan.access is not Access.SKIP:
                yield plan, statistics
        self.statistics.reached = len(plans)

    def _map_slices(
        self, work: Callable[[Job], Result], jobs: list[Job], *, counting: bool = False
    ) -> list[Result]:
        reader = self.reader
        most, local = reader.settings.read.parallelism, reader.table.storage.is_local
        return map_slices(work, jobs, most, local=local, counting=counting)


def _batches(
    reader: SliceReader, plan: SlicePlan, statistics: SliceStatistics
) -> Iterator[pa.RecordBatch]:
    return statistics.timing(reader.batches(plan, statistics))


def _counted(found: FoundRows) -> int:
    """The number of matching rows of a base file, which its statistics get, too."""
    found.statistics.rows_returned = len(found.rows or ())
    return found.statistics.rows_returned


def _is_looked_up(plan: SlicePlan) -> bool:
    """Whether a slice takes time before its rows are read."""
    return plan.access is Access.INDEX or is_merged_in_part(plan)


def _utf8(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _counts_of(column: str, batches: Iterable[pa.RecordBatch]) -> "Counter[bytes | None]":
    totals: Counter[bytes | None] = Counter()
    for batch in batches:
        for each in pc.value_counts(batch.column(column).cast(pa.binary())):
            totals[each["values"].as_py()] += each["counts"].as_py()
    return totals


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
        return batch  # rebuilt from no columns, it would have no rows
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)
