"""Runs a plan over its slices, in slice order, and adds up what was read."""

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from time import perf_counter_ns

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from hudi_index_service.arrow import nullable
from hudi_index_service.cancellation import check
from hudi_index_service.errors import RowIdsUnavailable
from hudi_index_service.optimizer.history.history import History
from hudi_index_service.optimizer.history.shape import query_shape
from hudi_index_service.optimizer.plan import Access, QueryPlan
from hudi_index_service.predicate.expression import Compare, In, IsNull
from hudi_index_service.read.freshness import saying
from hudi_index_service.read.parallel import (
    Job,
    Result,
    are_fast,
    mapped,
    prefetch,
    waiting,
    windows,
)
from hudi_index_service.read.recording import record, tell
from hudi_index_service.read.slices.counting import value_counts_of
from hudi_index_service.read.slices.found_rows import FoundRows, in_calls, matching_log_rows
from hudi_index_service.read.slices.slice_reader import SliceReader
from hudi_index_service.read.statistics import ReadStatistics
from hudi_index_service.read.turn import Turn

log = logging.getLogger(__name__)

_CORES = os.cpu_count() or 1

_FEW_ROWS = 1_000
"""Rows that are not worth reading on demand."""

_FEW_SLICES = 8
"""Slices that are not worth looking up by several threads."""

MOST_IN_TURN = 1_000
"""Rows of a slice that a query reads before other threads get their turn."""

_MANY_ROWS = 2**17
"""A limit from which on what is read beyond it, of small files by one call, takes less time than
calls for each of them."""


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
        turn: Ends where the query turns out not to be short.
    """

    plan: QueryPlan
    reader: SliceReader
    statistics: ReadStatistics = field(default_factory=ReadStatistics)
    history: History | None = None
    turn: Turn = field(default_factory=partial(Turn, is_needed=False))
    _started: int = field(default_factory=perf_counter_ns)

    @property
    def schema(self) -> pa.Schema:
        """The result's schema: the output columns with the table's types, all nullable even if
        older files declare them otherwise. Its metadata say what is left out."""
        return saying(nullable(self.reader.query.output), self.plan.left_out)

    def narrowed(self, output: pa.Schema) -> "Execution":
        """The same run for a narrowed query; see `Query.narrowed`."""
        query = self.reader.query.narrowed(output)
        return replace(self, reader=replace(self.reader, query=query))

    def batches(self, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """The result, in the order of the slices, without empty batches. In memory at a time are
        one batch, and what was found in a window of slices, their log rows included. With `limit`,
        the amount read at once suits a caller that takes this many rows."""
        schema = self.schema
        most = _MANY_ROWS if limit is None else limit
        at_once = self._expects_at_most(min(most, _FEW_ROWS))
        reads_all = at_once or most >= _MANY_ROWS
        reader = replace(self.reader, limit=None if reads_all else limit)
        self._begin()
        whole = False
        try:
            for window in self._windows(at_first=None if at_once else 1):
                for batch in reader.batches_of(reader.find(window)):
                    if batch.num_rows:
                        yield _with_schema(batch, schema)
            whole = limit is None
        except GeneratorExit:  # the caller stopped early
            self._end(whole=False)
            raise
        self._end(whole=whole)

    def _expects_at_most(self, rows: int) -> bool:
        """Whether so few rows are expected of all slices, which are looked up: they take no longer
        together than the first of them."""
        left = float(rows)
        for number in self.plan.left():
            each = self.plan.slices[number]
            if each.access is not Access.INDEX or each.expected is None:
                return False
            left -= each.expected.rows.expected
            if left < 0:
                return False
        return True

    def table(self, limit: int | None = None) -> pa.Table:
        """The whole result, or its first `limit` rows; several slices are read at once. With
        `limit`, slices are looked up in growing windows, and no more of a window are read than
        needed, except for some prefetched ones."""
        self._begin()
        results = self._all_rows() if limit is None else self._rows_up_to(limit)
        schema, batches = self.schema, first_rows(chain.from_iterable(results), limit)
        rows = pa.Table.from_batches((_with_schema(batch, schema) for batch in batches), schema)
        self._end(whole=limit is None)
        return rows

    def _is_short(self) -> bool:
        """Whether little is expected to be looked up and read."""
        predicate = self.plan.predicate
        return (
            predicate is not None
            and len(self.plan.left()) <= _FEW_SLICES
            and self._expects_at_most(_FEW_ROWS)
            and all(isinstance(each, Compare | In | IsNull) for each in predicate.leaves())
        )

    def _all_rows(self) -> Iterator[Sequence[pa.RecordBatch]]:
        """The matching rows of each window. Those of many slices are read by one call."""
        for window in self._windows():
            found = self.reader.find(window)
            if any(each.rows is None or len(each.rows) > MOST_IN_TURN for each in found):
                self.turn.end()
            yield list(matching_log_rows(found))
            yield from self._read(found, list)

    def _rows_up_to(self, limit: int) -> Iterator[list[pa.RecordBatch]]:
        """The first matching rows of each slice, as many as are asked for."""
        reader = replace(self.reader, limit=limit)

        def first(found: FoundRows) -> list[pa.RecordBatch]:
            return list(first_rows(found.statistics.timing(reader.rows(found)), limit))

        for window in self._windows(at_first=1):
            yield from prefetch(first, reader.find(window), reader.settings.read.parallelism)

    def count(self) -> int:
        """The number of matching rows, from the index alone where its answer is exact."""
        self._begin()
        number: int = sum(self.plan.counted.values())
        for window in self._windows():
            exact = self.reader.exact_rows(window, if_cheaper=True, counts=True)
            known = [each for each in exact if each is not None]
            others = [job for job, each in zip(window, exact, strict=True) if each is None]
            number += sum(map(_counted, known))
            found = self.reader.find(others)
            number += sum(self._read(found, _count))
            number += sum(batch.num_rows for batch in matching_log_rows([*known, *found]))
        self._end(whole=True)
        return number

    def value_counts(self, column: str) -> "Counter[bytes | None]":
        """The number of matching rows per value of a text column, the query's only output column;
        from the index alone where its answer is exact and it holds the values. Texts are bytes,
        since Spark also has texts that are not UTF-8."""
        self._begin()
        counts: Counter[bytes | None] = Counter()
        for window in self._windows():
            others = list[Job]()
            exact = self.reader.exact_rows(window, if_cheaper=True)
            listed = self.reader.mapped(partial(self._values_of, column), exact)
            for job, found, values in zip(window, exact, listed, strict=True):
                if found is None or values is None:
                    others.append(job)
                    continue
                _counted(found)
                counts.update({_utf8(each): number for each, number in values.items()})
                counts.update(_counts_of(column, matching_log_rows([found])))
            rows = self.reader.find(others)
            for each in self._read(rows, partial(_counts_of, column)):
                counts.update(each)
            counts.update(_counts_of(column, matching_log_rows(rows)))
        self._end(whole=True)
        return counts

    def _values_of(self, column: str, found: FoundRows | None) -> "Counter[str | None] | None":
        if found is None:
            return None
        with found.statistics.timed():
            return value_counts_of(self.reader.pool, column, found)

    def exists(self) -> bool:
        """Whether any row matches. Slices are looked up in growing windows; after the first match
        no window is begun, and no slice read, except for some prefetched ones."""
        self._begin()
        most, found = self.reader.settings.read.parallelism, any(self.plan.counted.values())
        windows = self._windows(at_first=1, logs_last=True)
        while not found and (window := next(windows, None)) is not None:
            exact = self.reader.exact_base_rows(window, if_cheaper=True)
            found = any(each is not None and self.reader.some_count(each) for each in exact)
            jobs = list(zip(exact, window, strict=True))
            found = found or any(prefetch(lambda each: self._any(*each), jobs, most))
        self._end(whole=False)
        return found

    def row_ids(self) -> RowIds:
        """The row ids of the matching rows, by base file path; files without any are left out.

        Raises:
            RowIdsUnavailable: a slice with log files has to be merged whole.
        """
        self._begin()
        row_ids = RowIds()
        for window in self._windows():
            matching = self.reader.matching_rows(window)
            for (plan, statistics), found in zip(window, matching, strict=True):
                if found is None:
                    name = plan.file_slice.name
                    raise RowIdsUnavailable(f"{name} has log files: {statistics.note}.")
                if found.rows:
                    row_ids[plan.file_slice.name] = found.rows
                _counted(found)
                row_ids.in_log_files += sum(batch.num_rows for batch in matching_log_rows([found]))
        self._end(whole=True)
        return row_ids

    def _begin(self) -> None:
        if not self._is_short():
            self.turn.end()
        self._started = perf_counter_ns()
        self.statistics.start(self.plan.slices)
        for number, rows in self.plan.counted.items():
            counted = self.statistics.begin(number)
            counted.access, counted.candidates, counted.rows_returned = Access.INDEX, rows, rows

    def _end(self, *, whole: bool) -> None:
        """Logs a run that has ended and records it in the history, both without literals, since
        search terms must not appear in either.

        Args:
            whole: Whether all matching rows were read, or counted.
        """
        ms = (perf_counter_ns() - self._started) / 1e6
        if log.isEnabledFor(logging.INFO):
            self._log(ms)
        tell(self.plan, self.statistics, ms / 1000)
        if self.history is None:
            return
        threads = min(_CORES, self.reader.settings.read.parallelism)
        begun = self.statistics.begun
        slices_ms = sum(each.ms for each in begun.values())
        pace = min(1.0, ms * threads / slices_ms) if slices_ms else 1.0
        read = [(self.plan.slices[number], [each]) for number, each in begun.items()]
        record(self.history, self.plan, read, whole=whole, pace=pace)

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

    def _any(self, exact: FoundRows | None, job: Job) -> bool:
        """Whether a slice has a matching row.

        Args:
            exact: The matching rows of its base file, none of which is known to count; None if rows
                have to be read.
        """
        if exact is not None:
            with exact.statistics.timed():
                exact = self.reader.with_log_rows(exact)
            if exact is not None:
                return bool(exact.rows) or any(x.num_rows for x in matching_log_rows([exact]))
        batches = replace(self.reader, limit=1).batches(*job)
        return any(batch.num_rows for batch in job[1].timing(batches))

    def _windows(
        self, at_first: int | None = None, *, logs_last: bool = False
    ) -> Iterator[list[Job]]:
        """The slices that may have matching rows, each with its statistics, in windows that are
        looked up together.

        Args:
            at_first: See `windows`.
            logs_last: Whether slices of which only log rows may match come last: they are few, so
                that others are more likely to match.
        """
        plans, left = self.plan.slices, self.plan.left()
        if logs_last:
            left = sorted(left, key=lambda number: plans[number].access is Access.LOGS)
        merged = {number for number in left if plans[number].is_merged_in_part}
        for numbers in windows(left, merged, at_first):
            check()
            yield [(plans[number], self.statistics.begin(number)) for number in numbers]
        self.statistics.reached = len(plans)

    def _read(
        self, found: Iterable[FoundRows], work: Callable[[Iterable[pa.RecordBatch]], Result]
    ) -> list[Result]:
        """The results of some work on the matching rows of base files, in order; on those of many
        at once where one call reads them."""
        reader = self.reader
        groups = in_calls([replace(x, log_rows=()) if x.log_rows else x for x in found])
        local, most = reader.table.storage.is_local, reader.settings.read.parallelism
        may_be_fast = local and are_fast(group[0].plan for group in groups if len(group) == 1)
        if not local and all(each.by_page is not None for group in groups for each in group):
            most = waiting(most, is_local=local)
        return mapped(
            lambda group: work(reader.matching(group)), groups, most, may_be_fast=may_be_fast
        )


def _count(batches: Iterable[pa.RecordBatch]) -> int:
    number: int = sum(each.num_rows for each in batches)
    return number


def _counted(found: FoundRows) -> int:
    """The number of matching rows of a base file, which its statistics get, too."""
    number = len(found.rows) if found.rows is not None else found.count or 0
    found.statistics.rows_returned = number
    return number


def _utf8(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _counts_of(column: str, batches: Iterable[pa.RecordBatch]) -> "Counter[bytes | None]":
    totals: Counter[bytes | None] = Counter()
    for batch in batches:
        for each in pc.value_counts(batch.column(column).cast(pa.binary())):
            totals[each["values"].as_py()] += each["counts"].as_py()
    return totals


def first_rows(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """The first `limit` rows of some batches, all for None, without empty batches. No batch after
    these rows is taken."""
    if limit == 0:
        return
    left = limit
    for batch in batches:
        if left is not None:
            batch = batch.slice(0, left)
            left -= batch.num_rows
        if batch.num_rows:
            yield batch
        if left == 0:
            return


def _with_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    # Rebuilt from no columns, a batch would have no rows.
    if not schema.names or batch.schema.equals(schema, check_metadata=True):
        return batch
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)
