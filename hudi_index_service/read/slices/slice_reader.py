"""Reads file slices as planned: by row ids, by a scan, or merged with their log files, whole or in
part.

An index only narrows (design, rule 1): it gives candidates, and the query's predicate is checked on
every row read. If anything is wrong with an entry, its slice is scanned (rule 3).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
from hudi_index_parquet import Footer, ParquetReadError
from pyroaring import BitMap

from hudi_index_service.arrow import FALSE, as_truths
from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryUnusable, IndexRequired, IndexServiceError
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.optimizer.decide import (
    Counting,
    Reading,
    are_few,
    are_too_many,
    cheapest_reading,
)
from hudi_index_service.optimizer.grouping import is_answered_exactly
from hudi_index_service.optimizer.plan import BY_ENTRY, Access, Routes, SlicePlan
from hudi_index_service.predicate import evaluate
from hudi_index_service.read.base_file.file_scan import FooterCheck
from hudi_index_service.read.base_file.row_reader import (
    NumberedRows,
    RowReader,
    positions,
    row_positions,
    unreadable_by_row,
)
from hudi_index_service.read.parallel import Job, mapped, waiting
from hudi_index_service.read.query import Query
from hudi_index_service.read.slices.base_rows import (
    BaseRows,
    tests_all,
    without_replaced,
)
from hudi_index_service.read.slices.cheaper_reads import CheaperReads
from hudi_index_service.read.slices.found_rows import FoundRows, in_calls, read_together
from hudi_index_service.read.slices.log_rows import LogRowsCache, LogSlice
from hudi_index_service.read.slices.lookups import TAKES_LONGER, Lookups, usual_reading
from hudi_index_service.read.slices.reader_pool import ReaderPool
from hudi_index_service.read.slices.slice_entries import SliceEntries, warn_of
from hudi_index_service.read.statistics import SliceStatistics

T = TypeVar("T")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class SliceReader:
    """Reads the slices of one query.

    Attributes:
        instant: The snapshot's instant, up to which log files are merged.
        of_many: Whether they are among many slices of the table.
        limit: The number of rows needed, None for all; rows beyond it are not read by row id until
            the caller asks for more.
        index_required: Whether only the index may be used: nothing is scanned, even if the index is
            damaged or a scan is cheaper.
        footer_check: See `FileScan`.
        log_rows: Merges the log rows of slices, and keeps them for later queries.
        routes: Tells which values of a list base files may hold; None if unknown.
    """

    table: HudiTable
    query: Query
    instant: str
    pool: ReaderPool
    settings: Settings
    of_many: bool = False
    limit: int | None = None
    index_required: bool = False
    footer_check: FooterCheck | None = None
    log_rows: LogRowsCache = field(default_factory=lambda: LogRowsCache(0))
    routes: Routes | None = None

    def batches(
        self, plan: SlicePlan, statistics: SliceStatistics, within: range | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The slice's matching rows with the query's output columns.

        Args:
            within: The rows of the base file among which to look, from the start of a row group to
                the end of one; None for all. Only of a slice without log files.

        Raises:
            FileNotFoundError: a file of the slice is gone.
            TableFeatureUnsupported: the slice cannot be read without Spark.
            IndexRequired: the slice would have to be scanned, but the index is required.
        """
        (found,) = self.find([(plan, statistics)], within)
        yield from self.rows(found)

    def find(self, jobs: Sequence[Job], within: range | None = None) -> list[FoundRows]:
        """Looks up those slices that are planned by index, all together, and reads no rows. Takes
        and raises what `batches` does."""
        found = [self._unread(plan, statistics, within) for plan, statistics in jobs]
        base_rows = self._base_rows
        self._look_up(found)

        def finish(each: FoundRows) -> FoundRows:
            with each.statistics.timed():
                read = self._by_rows(each) if each.plan.access is Access.INDEX else each
                if read.plan.is_merged_in_part:
                    return self.with_log_rows(read) or self._merged_whole(read)
                if read.rows is None and read.plan.access in (Access.SCAN, Access.INDEX):
                    read.whole = base_rows.whole_reader(read)
                    if read.whole is not None:
                        read.statistics.access = Access.SCAN
                return read

        return self.mapped(finish, found)

    def matching(self, group: Sequence[FoundRows]) -> list[pa.RecordBatch]:
        """The matching rows of slices that have been looked up, in order, with the query's output
        columns. Raises what `batches` raises.

        Args:
            group: One of `in_calls`.
        """
        if len(group) > 1 or group[0].whole is not None:
            together = read_together(group)
            if together is not None:
                return [together]
        return [batch for each in group for batch in each.statistics.timing(self.rows(each))]

    def batches_of(self, found: Iterable[FoundRows]) -> Iterator[pa.RecordBatch]:
        """The same of any slices, as they are taken: those of `in_calls` by one call, unless there
        is a limit."""
        for group in in_calls(found) if self.limit is None else ([each] for each in found):
            if len(group) > 1:
                yield from self.matching(group)
            else:
                yield from group[0].statistics.timing(self.rows(group[0]))

    def rows(self, found: FoundRows) -> Iterator[pa.RecordBatch]:
        """The matching rows of one slice that has been looked up; see `matching`."""
        if found.plan.access is Access.MERGE:
            others = self.merged(found.plan)
        else:
            read = self._base_rows.of(found, numbered=bool(found.replaced))
            for each in without_replaced(read, found.replaced):
                yield found.results(each.batch, are_results=each.are_results)
            others = iter(found.log_rows)
        for batch in others:
            yield found.results(batch)

    @property
    def cheaper(self) -> CheaperReads:
        """Tells which slices are read without a look-up."""
        return CheaperReads(
            self.table.storage,
            self.pool,
            self.settings,
            self.query.table,
            self.of_many,
            counts=not self.query.output.names,
        )

    @property
    def _base_rows(self) -> BaseRows:
        storage = self.table.storage
        return BaseRows(storage, self.pool, self.settings, self.limit, self.footer_check)

    def candidates(self, plan: SlicePlan, statistics: SliceStatistics) -> Iterator[NumberedRows]:
        """The rows of the base file that may match, with the columns that the query needs, or has
        in its output; log files are ignored. Raises what `batches` raises."""
        if plan.access not in (Access.INDEX, Access.SCAN):
            return
        found = FoundRows(plan, statistics, self.query)
        self._look_up([found])
        if plan.access is Access.INDEX:
            self._by_rows(found)
        yield from self._base_rows.of(found)

    def merged(self, plan: SlicePlan) -> Iterator[pa.RecordBatch]:
        """The slice's rows after merging its log files, with the columns of the table that hold
        those that the query needs. Raises what `batches` raises."""
        roots = self.query.needed_roots
        yield from self.table.read_slice(
            plan.file_slice, roots, as_of=self.instant, schema=self.query.table
        )

    def log_slice(self, plan: SlicePlan) -> LogSlice:
        """A slice with log files, to be merged for the query."""

        def candidates(
            query: Query, plan: SlicePlan, statistics: SliceStatistics
        ) -> Iterator[NumberedRows]:
            reader = replace(self, query=query, limit=None, index_required=False)
            return reader.candidates(plan, statistics)

        return LogSlice(self.table, plan, self.query, self.instant, candidates)

    def with_log_rows(self, found: FoundRows) -> FoundRows | None:
        """The slice with its log rows, which are yet to be checked, and without the rows of its
        base file that they replace; None if the slice has to be merged whole, for the reason in the
        statistics."""
        if not found.plan.is_merged_in_part:
            return found
        log_rows = self.log_rows.of(self.log_slice(found.plan), found.statistics)
        if log_rows is None:
            return None
        rows, replaced = found.rows, log_rows.replaced
        if rows is not None and replaced:
            rows = rows - replaced
        return replace(found, rows=rows, replaced=replaced, log_rows=log_rows.batches)

    def _merged_whole(self, found: FoundRows) -> FoundRows:
        """A slice whose log rows cannot be merged alone."""
        plan, statistics = found.plan, found.statistics
        self._refuse_scan(plan, statistics.note)
        statistics.access = Access.MERGE
        return FoundRows(plan._replace(access=Access.MERGE), statistics, found.query)

    def is_index_only(self, plan: SlicePlan) -> bool:
        """Whether the index alone may determine the rows of a slice: not if it gives only
        candidates."""
        plan = plan.for_counting()
        return _is_index_only(plan, self.query.where_known(plan.values))

    def exact_rows(
        self, jobs: Sequence[Job], *, if_cheaper: bool = False, counts: bool = False
    ) -> list[FoundRows | None]:
        """The matching row ids of slices if the index alone determines them, and the log rows,
        which are yet to be checked; None if rows must be read. Slices of which it gives only
        candidates are not looked up. If the index failed, the reason is in the statistics.

        Args:
            if_cheaper: Whether to return None also if reading rows is cheaper than all look-ups.
            counts: Whether the number of rows is enough, where it is known without listing them.
        """
        exact = self.exact_base_rows(jobs, if_cheaper=if_cheaper, counts=counts)
        return self.mapped(lambda each: each and self.with_log_rows(each), exact)

    def exact_base_rows(
        self, jobs: Sequence[Job], *, if_cheaper: bool = False, counts: bool = False
    ) -> list[FoundRows | None]:
        """The same before log files are read: the matching rows of the base files, some of which
        may count no longer."""

        cheaper, may_scan = self.cheaper, not self.index_required
        ways: dict[tuple[int, ...], Counting] = {}
        """By the layouts of entries: one of many small files decides for the others, since to ask
        takes as long as to read it."""

        def is_read(found: FoundRows) -> bool:
            if may_scan and cheaper.unopened(found):
                return True
            key = None
            if cheaper.is_one_of_many_small(found.plan) and found.query is self.query:
                key = tuple([each.layout for each in found.plan.entries])
            way = None if key is None else ways.get(key)
            if way is None:
                way = cheaper.counting(found, len(found.query.needed))
                if key is not None:
                    ways[key] = way
            if way is Counting.SCAN and may_scan:
                found.statistics.note = TAKES_LONGER
            return way is not Counting.INDEX

        def asked(job: Job) -> FoundRows | None:
            plan, statistics = job
            plan = plan.for_counting()
            query = self.query.where_known(plan.values)
            if not _is_index_only(plan, query):
                return None
            statistics.access = plan.access
            if plan.access is not Access.INDEX:
                return FoundRows(plan, statistics, query, rows=BitMap())
            found = FoundRows(plan, statistics, query)
            return None if if_cheaper and is_read(found) else found

        found = self.mapped(asked, jobs)
        self._lookups(superset_ok=False, counts=counts).look_up(
            [each for each in found if each is not None and each.rows is None]
        )
        return [each and self._exact(each) for each in found]

    def _exact(self, found: FoundRows) -> FoundRows | None:
        """A slice with the rows of its look-up, if these are exact; without one it has none."""
        if found.rows is not None:
            return found
        if found.failure is not None:
            self._fall_back(found.plan, found.failure, found.statistics)
            return None
        possible, found.rows = found.bounds.possible, found.bounds.exact_rows
        found.statistics.candidates = found.count if possible is None else len(possible)
        return None if found.rows is None and found.count is None else found

    def some_count(self, exact: FoundRows) -> bool:
        """Whether one of the exact rows of a base file is known to count. The keys in log files
        are read for it, but nothing is merged."""
        if not exact.rows or not exact.plan.is_merged_in_part:
            return bool(exact.rows)
        replaced = self.log_rows.replaced(self.log_slice(exact.plan), exact.statistics)
        return replaced is not None and bool(exact.rows - replaced)

    def matching_rows(self, jobs: Sequence[Job]) -> list[FoundRows | None]:
        """The row ids of the base files whose rows match, residual included, and the log rows,
        which are yet to be checked; None for slices that have to be merged whole, for the reason in
        the statistics."""
        exact = self.exact_base_rows(jobs)

        def match(both: tuple[Job, FoundRows | None]) -> FoundRows | None:
            (plan, statistics), known = both
            with statistics.timed():
                if known is not None:
                    return self.with_log_rows(known)
                unread = FoundRows(plan, statistics, self.query.where_known(plan.values))
                found = self.with_log_rows(unread)
                if found is not None:
                    rows = self._checked(found)
                    found.rows = rows - found.replaced if found.replaced else rows
                return found

        return self.mapped(match, list(zip(jobs, exact, strict=True)))

    def mapped(self, work: Callable[[T], Result], slices: Sequence[T]) -> list[Result]:
        """The results of some work on slices, in order, by several threads if that is faster."""
        local = self.table.storage.is_local
        return mapped(work, slices, self._most_looked_up, may_be_fast=local)

    @property
    def _most_looked_up(self) -> int:
        """The most slices that are looked up at once."""
        return waiting(self.settings.read.parallelism, is_local=self.table.storage.is_local)

    def _checked(self, found: FoundRows) -> BitMap:
        """The rows of a base file that the residual leaves."""
        query, row_ids = found.query.counting(), BitMap()
        reader = replace(self, query=query)
        for rows, batch, are_results in reader.candidates(found.plan, found.statistics):
            found.statistics.rows_checked += batch.num_rows
            mask = np.ones(batch.num_rows, dtype=bool)
            if query.predicate is not None and not are_results:
                mask = as_truths(evaluate(query.predicate, batch).fill_null(FALSE))
            row_ids |= BitMap(positions(rows)[mask].astype(np.uint32))
        return row_ids

    def _unread(
        self, plan: SlicePlan, statistics: SliceStatistics, within: range | None = None
    ) -> FoundRows:
        """A slice of which nothing is known."""
        assert within is None or not plan.file_slice.log_files, "log rows belong to no part"
        if self.limit is not None:
            plan = plan.for_counting()
            statistics.access = plan.access
        query = self.query.where_known(plan.values)
        rows = BitMap() if plan.access is Access.LOGS else None
        return FoundRows(plan, statistics, query, rows, within=within)

    def _lookups(self, *, superset_ok: bool, counts: bool = False) -> Lookups:
        return Lookups(
            self.pool,
            superset_ok,
            counts,
            self.routes,
            usual_reading if self.index_required else self.cheaper.reading,
            self._most_looked_up,
        )

    def _look_up(self, found: Sequence[FoundRows]) -> None:
        """Looks up the slices that are planned by index, unless a scan is cheaper than that."""
        by_index = [each for each in found if each.plan.access is Access.INDEX]
        asked, is_limited = by_index, self.limit is not None
        if not self.index_required:
            scan_pays = partial(self.cheaper.scan_pays, is_limited=is_limited)
            scanned = self.mapped(scan_pays, by_index)
            asked = [each for each, scan in zip(by_index, scanned, strict=True) if not scan]
        self._lookups(superset_ok=True).look_up(asked)

    def _by_rows(self, found: FoundRows) -> FoundRows:
        """How the rows of a slice that was looked up are read."""
        plan, statistics, rows = found.plan, found.statistics, found.bounds.possible
        if found.failure is not None:
            self._fall_back(plan, found.failure, statistics)
            found.trusted = False
            return found
        if rows is None:
            statistics.note = statistics.note or "the index narrowed nothing"
            self._refuse_scan(plan, statistics.note)
            return found
        rows = rows if found.within is None else rows & BitMap(found.within)
        statistics.candidates = len(rows)
        found.rows = rows
        if not rows:
            return found
        footer = found.footer
        try:
            if footer is None or any(each.stored for each in plan.entries):
                with SliceEntries.leased(plan, self.pool, statistics) as entries:
                    footer = footer or entries.footer()
                    found.stored = entries.stored_rows(self.table.storage, found.query.needed)
        except EntryUnusable as error:
            self._fall_back(plan, error, statistics)
            found.rows, found.trusted = None, False
            return found
        self._choose_reading(found, rows, footer)
        return found

    def _choose_reading(self, found: FoundRows, rows: BitMap, footer: Footer) -> None:
        """Chooses how to read the rows: page by page, unless reading more of the file costs
        less."""
        plan, storage = found.plan, self.table.storage
        base_file, few = plan.file_slice.base_file, min(len(rows), self.limit or len(rows))
        by_page = RowReader(storage, base_file, footer, found.query.needed)
        # Stored values are never more than a scan of the base file.
        if found.stored is not None or (storage.is_local and are_few(few, plan.total)):
            found.by_page = by_page
            return
        remote = not storage.is_local
        may_scan = not remote and not self.index_required
        tests = may_scan and tests_all(found.query.normal_form, footer.schema)
        if tests and are_too_many(few, plan.total, self.settings.read.scan_fraction):
            found.statistics.note = f"{few} rows may match: reading the file whole is cheaper"
            found.rows = None
            return
        try:
            cost = by_page.plan(row_positions(rows)[:few])
        except ParquetReadError as error:
            found.statistics.note = unreadable_by_row(base_file, error)
            found.readable_by_row = False
            return
        reading = cheapest_reading(cost, self.settings, remote=remote, rows=few)
        if reading is not Reading.PAGES and not self.index_required:
            what = "the file" if reading is Reading.FILE else "their row groups"
            why = f"{cost.pages} pages hold the rows: reading {what} whole is cheaper"
            found.statistics.note = why
            if tests and reading is Reading.FILE:
                found.rows = None  # picking the rows that were found takes longer
            return
        found.by_page = by_page

    def _fall_back(
        self, plan: SlicePlan, error: IndexServiceError, statistics: SliceStatistics
    ) -> None:
        reason = error.message.rstrip(".")
        self._refuse_scan(plan, reason, error)
        warn_of(error, f"{plan.file_slice.name} is scanned")
        statistics.note = reason

    def _refuse_scan(
        self, plan: SlicePlan, reason: str, cause: IndexServiceError | None = None
    ) -> None:
        if self.index_required:
            raise IndexRequired(
                f"{plan.file_slice.name} cannot be read through an index: {reason}.",
                remedy=None if cause is None else cause.remedies,
            ) from cause


def _is_index_only(plan: SlicePlan, query: Query) -> bool:
    predicate = query.normal_form
    if plan.access is not Access.INDEX:
        return plan.access in BY_ENTRY
    return predicate is not None and is_answered_exactly(predicate, plan.entries)
