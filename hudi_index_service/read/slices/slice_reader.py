"""Reads one file slice as planned: by row ids, by a scan, or merged with its log files, whole or in
part.

An index only narrows (design, rule 1): it gives candidates, and the query's predicate is checked on
every row read. If anything is wrong with an entry, its slice is scanned (rule 3).
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
import pyarrow as pa
from hudi_index_parquet import Footer, ParquetReadError
from pyroaring import BitMap

from hudi_index_service.arrow import FALSE, as_truths
from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryUnusable, IndexRequired, IndexServiceError
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.contract import Answer
from hudi_index_service.optimizer.cost import load_constants
from hudi_index_service.optimizer.decide import (
    Reading,
    are_few,
    are_too_many,
    cheapest_reading,
)
from hudi_index_service.optimizer.grouping import grouped
from hudi_index_service.optimizer.plan import BY_ENTRY, Access, SlicePlan
from hudi_index_service.predicate import evaluate, keep
from hudi_index_service.predicate.fold import conjuncts, fold
from hudi_index_service.read.base_file.file_scan import FooterCheck
from hudi_index_service.read.base_file.row_reader import (
    NumberedRows,
    RowReader,
    positions,
    row_positions,
    unreadable_by_row,
)
from hudi_index_service.read.query import Query
from hudi_index_service.read.row_ids import Bounds
from hudi_index_service.read.slices.base_rows import (
    base_file_of,
    rows_by_scan,
    rows_of,
    without_replaced,
)
from hudi_index_service.read.slices.counting import (
    has_list_of_terms,
    prefer_scan_for_count,
)
from hudi_index_service.read.slices.early_lookups import EarlyLookups
from hudi_index_service.read.slices.entry_estimates import row_estimate
from hudi_index_service.read.slices.entry_lookups import EntryLookups
from hudi_index_service.read.slices.found_rows import FoundRows, read_together
from hudi_index_service.read.slices.log_rows import LogRowsCache
from hudi_index_service.read.slices.reader_pool import ReaderPool
from hudi_index_service.read.slices.slice_entries import SliceEntries, warn_of
from hudi_index_service.read.statistics import SliceStatistics


@dataclass(frozen=True, slots=True)
class SliceReader:
    """Reads the slices of one query.

    Attributes:
        instant: The snapshot's instant, up to which log files are merged.
        limit: The number of rows needed, None for all; rows beyond it are not read by row id until
            the caller asks for more.
        index_required: Whether only the index may be used: nothing is scanned, even if the index is
            damaged or a scan is cheaper.
        footer_check: See `FileScan`.
        log_rows: Merges the log rows of slices, and keeps them for later queries.
        early: What the slices have answered together to `query`; a reader of another query needs
            its own.
    """

    table: HudiTable
    query: Query
    instant: str
    pool: ReaderPool
    settings: Settings
    limit: int | None = None
    index_required: bool = False
    footer_check: FooterCheck | None = None
    log_rows: LogRowsCache = field(default_factory=lambda: LogRowsCache(0))
    early: EarlyLookups = field(default_factory=EarlyLookups)

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
        if self.limit is not None:
            plan = plan.for_counting()
            statistics.access = plan.access
        yield from self._matching(self.find(plan, statistics, within))

    def find(
        self, plan: SlicePlan, statistics: SliceStatistics, within: range | None = None
    ) -> FoundRows:
        """Looks up the rows of the slice, if that is how it is planned, but reads none; see
        `matching`. Takes and raises what `batches` does."""
        assert within is None or not plan.file_slice.log_files, "log rows belong to no part"
        reader = self._in_partition(plan)
        if plan.access is Access.INDEX:
            found = reader._look_up(plan, statistics, within)
        else:
            found = FoundRows(plan, statistics, reader.query, within=within)
        return reader._with_log_rows(found) if is_merged_in_part(plan) else found

    def matching(self, group: Sequence[FoundRows]) -> list[pa.RecordBatch]:
        """The matching rows of slices that have been looked up, in order, with the query's output
        columns. Raises what `batches` raises.

        Args:
            group: One of `in_calls`.
        """
        if len(group) > 1:
            together = read_together(group)
            if together is not None:
                return [together]
        return [batch for each in group for batch in each.statistics.timing(self._matching(each))]

    def _matching(self, found: FoundRows) -> Iterator[pa.RecordBatch]:
        reader = replace(self, query=found.query)
        if found.plan.access is Access.MERGE:
            rows = reader.merged(found.plan)
        else:
            rows = chain(without_replaced(rows_of(reader, found), found.replaced), found.log_rows)
        for batch in rows:
            yield reader._apply_residual(batch, found.statistics)

    def look_up_together(self, plans: Sequence[SlicePlan]) -> Set[int]:
        """Looks up the query in many slices together, and returns the positions of those that need
        not be read; see `EarlyLookups`."""
        return self.early.look_up(plans, self.query.normal_form, self.pool)

    def candidates(self, plan: SlicePlan, statistics: SliceStatistics) -> Iterator[NumberedRows]:
        """The rows of the base file that may match, with the columns that the query needs; log
        files are ignored. Raises what `batches` raises."""
        if plan.access is Access.INDEX:
            yield from rows_of(self, self._look_up(plan, statistics))
        elif plan.access is Access.SCAN:
            yield from rows_by_scan(self, plan, statistics)

    def merged(self, plan: SlicePlan) -> Iterator[pa.RecordBatch]:
        """The slice's rows after merging its log files, with the columns of the table that hold
        those that the query needs. Raises what `batches` raises."""
        roots = self.query.needed_roots
        yield from self.table.read_slice(
            plan.file_slice, roots, as_of=self.instant, schema=self.query.table
        )

    def log_rows_of(self, plan: SlicePlan, statistics: SliceStatistics) -> FoundRows | None:
        """The log rows of a slice alone, and the rows of its base file that they replace; None if
        the slice has to be merged whole, for the reason in the statistics."""
        reader = self._in_partition(plan)
        if not is_merged_in_part(plan):
            return FoundRows(plan, statistics, reader.query, rows=BitMap())
        log_rows = self.log_rows.of(reader, plan, statistics)
        if log_rows is None:
            return None
        return FoundRows(
            plan,
            statistics,
            reader.query,
            rows=BitMap(),
            replaced=log_rows.replaced,
            log_rows=log_rows.batches,
        )

    def _with_log_rows(self, found: FoundRows) -> FoundRows:
        """A slice with its log rows; merged whole if these cannot be merged alone."""
        plan, statistics = found.plan, found.statistics
        log_rows = self.log_rows.of(self, plan, statistics)
        if log_rows is None:
            self._refuse_scan(plan, statistics.note)
            statistics.access = Access.MERGE
            return FoundRows(replace(plan, access=Access.MERGE), statistics, found.query)
        rows = BitMap() if plan.access is Access.LOGS else found.rows
        merged = replace(found, replaced=log_rows.replaced, log_rows=log_rows.batches)
        return merged if rows is None else merged.without_replaced(rows)

    def _in_partition(self, plan: SlicePlan) -> "SliceReader":
        """This reader with the partition values of the slice."""
        query = self.query.where_known(plan.values) if plan.values else self.query
        return self if query is self.query else replace(self, query=query)

    def is_index_only(self, plan: SlicePlan) -> bool:
        """Whether `exact_rows` is worth calling: not if the index gives only candidates, which
        would be looked up again for reading."""
        plan = plan.for_counting()
        if plan.access is not Access.INDEX:
            return plan.access in BY_ENTRY
        predicate = self._in_partition(plan).query.normal_form
        return predicate is not None and fold(
            grouped(predicate, plan.entries, exact=True),
            lambda leaf: any(each.answer(leaf) is Answer.EXACT for each in plan.entries),
            all_of=all,
            any_of=all,
            together=True,
        )

    def exact_rows(
        self, plan: SlicePlan, statistics: SliceStatistics, *, if_cheaper: bool = False
    ) -> FoundRows | None:
        """The matching row ids if the index alone determines them, and the log rows, which are yet
        to be checked; None if rows must be read. If the index failed, the reason is in the
        statistics.

        Args:
            if_cheaper: Whether to return None also if reading rows is cheaper than all look-ups.
        """
        exact = self.exact_base_rows(plan, statistics, if_cheaper=if_cheaper)
        return None if exact is None else self.with_log_rows(exact)

    def exact_base_rows(
        self, plan: SlicePlan, statistics: SliceStatistics, *, if_cheaper: bool = False
    ) -> FoundRows | None:
        """The same before log files are read: the matching rows of the base file, some of which may
        count no longer."""
        plan = plan.for_counting()
        if plan.access not in BY_ENTRY:
            return None
        query = self._in_partition(plan).query
        found = FoundRows(plan, statistics, query, rows=BitMap())
        return self._exact(found, if_cheaper=if_cheaper)

    def exact_count(self, plan: SlicePlan, statistics: SliceStatistics) -> int | None:
        """The number of matching rows of a slice without log files, if an entry knows it without
        listing them; else None. A failure is reported by `exact_rows`."""
        plan = plan.for_counting()
        if plan.access is not Access.INDEX or plan.file_slice.log_files:
            return None
        predicate = self._in_partition(plan).query.normal_form
        assert predicate is not None, "without predicate there is no index access"
        if has_list_of_terms(predicate):
            return None  # these would be walked twice
        if self.early.found(plan).get(predicate) is not None:
            return None  # the rows are known already, and counted
        try:
            with SliceEntries.leased(plan, self.pool, statistics) as entries:
                number = fold(
                    grouped(predicate, plan.entries, exact=True),
                    entries.count,
                    all_of=_unknown,
                    any_of=_unknown,
                    together=True,
                )
        except EntryUnusable:
            return None
        if number is not None:
            statistics.access, statistics.candidates = plan.access, number
            statistics.rows_returned = number
        return number

    def some_count(self, exact: FoundRows) -> bool:
        """Whether one of the exact rows of a base file is known to count. The keys in log files
        are read for it, but nothing is merged."""
        if not exact.rows or not is_merged_in_part(exact.plan):
            return bool(exact.rows)
        reader = replace(self, query=exact.query)
        replaced = self.log_rows.replaced(reader, exact.plan, exact.statistics)
        return replaced is not None and bool(exact.rows - replaced)

    def with_log_rows(self, exact: FoundRows) -> FoundRows | None:
        """The exact rows that count, and the log rows, which are yet to be checked; None if the
        slice has to be merged whole, for the reason in the statistics."""
        assert exact.rows is not None, "exact rows are known"
        found = self.log_rows_of(exact.plan, exact.statistics)
        return None if found is None else found.without_replaced(exact.rows)

    def matching_rows(self, plan: SlicePlan, statistics: SliceStatistics) -> FoundRows | None:
        """The row ids of the base file whose rows match, residual included, and the log rows, which
        are yet to be checked; None if the slice has to be merged whole, for the reason in the
        statistics."""
        found = self.log_rows_of(plan, statistics)
        if found is None:
            return None
        if self.is_index_only(plan):
            exact = self._exact(replace(found, plan=plan.for_counting()))
            if exact is not None:
                return exact
        reader = replace(self, query=found.query.counting())
        row_ids = BitMap()
        for rows, batch in reader.candidates(plan, statistics):
            statistics.rows_checked += batch.num_rows
            mask = np.ones(batch.num_rows, dtype=bool)
            if reader.query.predicate is not None:
                mask = as_truths(evaluate(reader.query.predicate, batch).fill_null(FALSE))
            row_ids |= BitMap(positions(rows)[mask].astype(np.uint32))
        return found.without_replaced(row_ids)

    def _exact(self, found: FoundRows, *, if_cheaper: bool = False) -> FoundRows | None:
        """The rows that the index alone determines; see `exact_rows`."""
        plan, statistics = found.plan, found.statistics
        statistics.access = plan.access
        if plan.access is not Access.INDEX:
            return found
        predicate = found.query.normal_form
        assert predicate is not None, "without predicate there is no index access"
        reader = self if found.query is self.query else replace(self, query=found.query)
        known = self.early.found(plan).get(predicate)
        if known is not None and known.exact_rows is not None:
            statistics.candidates = len(known.exact_rows)
            return found.without_replaced(known.exact_rows)
        try:
            with SliceEntries.leased(plan, self.pool, statistics) as entries:
                if if_cheaper and prefer_scan_for_count(
                    conjuncts(grouped(predicate, plan.entries)),
                    entries.estimate,
                    entries.total,
                    len(found.query.needed),
                    load_constants(self.settings),
                ):
                    return None
                exact = reader._bounds(plan, entries, statistics, superset_ok=False).exact_rows
        except EntryUnusable as error:
            self._fall_back(plan, error, statistics)
            return None
        return None if exact is None else found.without_replaced(exact)

    def _look_up(
        self, plan: SlicePlan, statistics: SliceStatistics, within: range | None = None
    ) -> FoundRows:
        """Looks up a slice that is planned by index, and decides how its rows are read."""
        predicate = self.query.normal_form
        assert predicate is not None, "a query without predicate is never read by index"
        listed = self.early.listed(plan, predicate)
        if listed is not None and within is None and not any(e.stored for e in plan.entries):
            statistics.candidates = len(listed.rows)
            statistics.lookup_ms += listed.ms
            statistics.ms += listed.ms
            found = FoundRows(plan, statistics, self.query, rows=listed.rows)
            return self._by_page_or_scan(found, listed.rows, listed.entry.bounds.footer)
        found = FoundRows(plan, statistics, self.query, within=within)
        try:
            with SliceEntries.leased(plan, self.pool, statistics) as entries:
                why_scan = self._why_scan(plan, entries)
                if why_scan:
                    statistics.note = why_scan
                    return found
                rows = self._bounds(plan, entries, statistics, superset_ok=True).possible
                footer = entries.footer()
                stored = None
                if rows:
                    stored = entries.stored_rows(self.table.storage, self.query.needed)
        except EntryUnusable as error:
            self._fall_back(plan, error, statistics)
            return replace(found, trusted=False)
        if rows is None:
            statistics.note = "the index narrowed nothing"
            self._refuse_scan(plan, statistics.note)
            return found
        if within is not None:
            rows = rows & BitMap(within)
            statistics.candidates = len(rows)
        found = replace(found, rows=rows, stored=stored)
        if not rows:
            return found
        return self._by_page_or_scan(found, rows, footer)

    def _by_page_or_scan(self, found: FoundRows, rows: BitMap, footer: Footer) -> FoundRows:
        """How to read the rows: page by page, unless reading more of the file costs less."""
        plan, row_ids, storage = found.plan, row_positions(rows), self.table.storage
        base_file = base_file_of(plan)
        reader = RowReader(storage, base_file, footer, self.query.needed)
        first_row_ids = row_ids if self.limit is None else row_ids[: self.limit]
        try:
            if found.stored is not None:  # never more than a scan of the base file
                return replace(found, by_page=reader, cost=found.stored.plan(first_row_ids))
            cost = reader.plan(first_row_ids)
        except ParquetReadError as error:
            found.statistics.note = unreadable_by_row(base_file, error)
            return replace(found, readable_by_row=False)
        remote = not storage.is_local
        reading = cheapest_reading(cost, self.settings, remote=remote, rows=len(first_row_ids))
        if reading is not Reading.PAGES and not self.index_required:
            what = "the file" if reading is Reading.FILE else "their row groups"
            found.statistics.note = (
                f"{cost.pages} pages hold the rows: reading {what} whole is cheaper"
            )
            return found
        return replace(found, by_page=reader, cost=cost)

    def _bounds(
        self,
        plan: SlicePlan,
        entries: SliceEntries,
        statistics: SliceStatistics,
        *,
        superset_ok: bool,
    ) -> Bounds:
        predicate = self.query.normal_form
        assert predicate is not None, "a query without predicate is never read by index"
        steps, known = load_constants(self.settings).row_steps, self.early.found(plan)
        bounds = EntryLookups(entries, superset_ok, row_steps=steps, known=known).rows(predicate)
        statistics.candidates = None if bounds.possible is None else len(bounds.possible)
        return bounds

    def _why_scan(self, plan: SlicePlan, entries: SliceEntries) -> str:
        """Why a scan is cheaper than any look-up, by the bounds of the open entries; "" if it is
        not. They are asked only if manifests let expect many rows."""
        predicate, expected = self.query.normal_form, plan.expected
        assert predicate is not None, "a query without predicate is never read by index"
        if self.limit is not None or self.index_required or self.early.found(plan):
            return ""
        if expected is None or are_few(round(expected.rows.expected), plan.total):
            return ""
        least = row_estimate(predicate, entries).least
        if not are_too_many(least, plan.total, self.settings):
            return ""
        return f"at least {least} rows match: reading the file whole is cheaper"

    def _apply_residual(self, batch: pa.RecordBatch, statistics: SliceStatistics) -> pa.RecordBatch:
        """The residual: the rows where the predicate is TRUE, with the output columns."""
        statistics.rows_checked += batch.num_rows
        if self.query.predicate is not None:
            batch = keep(self.query.predicate, batch)
        statistics.rows_returned += batch.num_rows
        return self.query.result(batch)

    def _fall_back(
        self,
        plan: SlicePlan,
        error: IndexServiceError,
        statistics: SliceStatistics,
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


def _unknown(_: Iterable[int | None]) -> int | None:
    """The count of several conditions, whose rows have to be listed."""
    return None


def is_merged_in_part(plan: SlicePlan) -> bool:
    """Whether only the log rows of a slice are merged."""
    whole_or_not_at_all = (Access.MERGE, Access.SKIP)
    return bool(plan.file_slice.log_files) and plan.access not in whole_or_not_at_all
