"""Reads one file slice as its plan says: by row ids, by a scan, or merged with its log files.

Whatever the way, the query's predicate is checked on every row read: an index only narrows
(design, rule 1). Whatever is wrong with an entry, its slice is scanned (rule 3).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from hudi_index_parquet import Footer, ParquetReadError
from pyroaring import BitMap

from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexRequired, IndexServiceError
from hudi_index_service.index.contract import Answer
from hudi_index_service.optimizer.access import Reading, cheapest_reading, has_few_rows
from hudi_index_service.optimizer.cost import load_constants
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.predicate import evaluate, keep
from hudi_index_service.read.asked_in_vain import AskedInVain
from hudi_index_service.read.careful_lookups import CarefulLookups
from hudi_index_service.read.counting_cost import is_read_sooner
from hudi_index_service.read.entry_lookups import EntryLookups
from hudi_index_service.read.file_scan import FileScan
from hudi_index_service.read.query import Query
from hudi_index_service.read.reader_pool import ReaderPool
from hudi_index_service.read.row_ids import RowSet, candidate_rows, is_exact
from hudi_index_service.read.row_reader import (
    RowIds,
    RowReader,
    row_positions,
    unreadable_by_row,
)
from hudi_index_service.read.sampled_rows import is_soon_checked
from hudi_index_service.read.slice_entries import INDEX_FAILURES, SliceEntries, warn_of
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.table.protocol import BaseFile, HudiTable


@dataclass(frozen=True, slots=True)
class SliceReader:
    """Reads the slices of one query.

    Attributes:
        instant: The snapshot's instant, to which log files are merged.
        limit: How many rows are wanted at all: no more are read by row id before somebody asks
            for more; None for all.
        index_required: Whether rows may be had through the index alone: nothing is scanned then,
            be it damaged or a scan be cheaper.
        in_vain: What slices that were asked tell of those that are still to be read.
    """

    table: HudiTable
    query: Query
    instant: str
    pool: ReaderPool
    settings: Settings
    limit: int | None = None
    index_required: bool = False
    in_vain: AskedInVain = field(default_factory=AskedInVain)

    def batches(self, plan: SlicePlan, statistics: SliceStatistics) -> Iterator[pa.RecordBatch]:
        """The slice's matching rows with the query's output columns.

        Raises:
            FileNotFoundError: a file of the slice is gone.
            TableFeatureUnsupported: the slice cannot be read right here.
            IndexRequired: it would have to be scanned, and must not be.
        """
        if self.limit is not None:
            plan = plan.for_counting()
            statistics.access = plan.access
        reader = self._in_partition(plan)
        if plan.access is Access.INDEX:
            yield from reader._by_index(plan, statistics)
        elif plan.access is Access.MERGE:
            yield from reader._merged(plan, statistics)
        elif plan.access is Access.SCAN:
            yield from reader._scanned(plan, statistics)

    def _in_partition(self, plan: SlicePlan) -> "SliceReader":
        """Itself, for rows of the slice's partition."""
        return replace(self, query=self.query.where_known(plan.values)) if plan.values else self

    def may_settle(self, plan: SlicePlan) -> bool:
        """Whether `settled_rows` is worth asking: not where the index gives candidates only, which
        have to be looked up again to be read."""
        plan = plan.for_counting()
        predicate = self._in_partition(plan).query.normal_form
        if plan.access is not Access.INDEX or predicate is None:
            return plan.access is Access.SKIP
        return is_exact(
            predicate, lambda leaf: any(e.answer(leaf) is Answer.EXACT for e in plan.entries)
        )

    def settled_rows(
        self, plan: SlicePlan, statistics: SliceStatistics, *, if_cheaper: bool = False
    ) -> BitMap | None:
        """The matching row ids where the index alone knows them; None where rows have to be read.
        If the index could not be asked, the reason is in the statistics.

        Args:
            if_cheaper: None as well where some rows are read sooner than all look-ups are made.
        """
        if plan.access is Access.SKIP:
            return BitMap()
        plan = plan.for_counting()
        if plan.access is not Access.INDEX:
            return None
        statistics.access = Access.INDEX
        try:
            with SliceEntries.leased(plan, self.pool, statistics) as entries:
                reader = self._in_partition(plan)
                query = reader.query
                assert query.normal_form is not None, "without predicate there is no index access"
                if if_cheaper and is_read_sooner(
                    query.normal_form,
                    EntryLookups(entries, thrifty=False),
                    len(query.needed),
                    load_constants(self.settings),
                ):
                    return None
                return reader._row_set(plan, entries, statistics, thrifty=False).settled
        except INDEX_FAILURES as error:
            self._fall_back(plan, error, statistics)
            return None

    def matching_rows(self, plan: SlicePlan, statistics: SliceStatistics) -> BitMap:
        """The row ids of a slice without log files whose rows match, residual included."""
        settled = self.settled_rows(plan, statistics)
        if settled is not None:
            return settled
        query = self.query.where_known(plan.values)
        predicate, needed = query.predicate, self.query.counting().needed
        found, start = BitMap(), 0
        for batch in self._scan(_base_file(plan), needed, statistics).everything():
            kept = np.ones(batch.num_rows, dtype=bool)
            if predicate is not None:
                truth = evaluate(predicate, batch).fill_null(False)
                kept = truth.to_numpy(zero_copy_only=False)
            found |= BitMap((np.flatnonzero(kept) + start).astype(np.uint32))
            start += batch.num_rows
        statistics.rows_checked, statistics.rows_returned = start, len(found)
        return found

    def _by_index(self, plan: SlicePlan, statistics: SliceStatistics) -> Iterator[pa.RecordBatch]:
        if self._weighs(plan) and self.in_vain.would_be(plan.expected, plan.total):
            statistics.note = "in files like it a scan was cheaper than to read rows by the index"
            yield from self._scanned(plan, statistics)
            return
        try:
            with SliceEntries.leased(plan, self.pool, statistics) as entries:
                found = self._row_set(plan, entries, statistics, thrifty=True)
                footer = entries.footer()
        except INDEX_FAILURES as error:
            self._fall_back(plan, error, statistics)
            yield from self._scanned(plan, statistics, trusted=False)
            return
        if found.rows is None:
            self.in_vain.tell(plan.expected, plan.total, in_vain=True)
            statistics.note = statistics.note or "the index narrowed nothing"
            self._refuse_scan(plan, statistics.note)
            yield from self._scanned(plan, statistics)
        elif found.rows:
            yield from self._by_rows(plan, found.rows, footer, statistics)
        else:
            self.in_vain.tell(plan.expected, plan.total, in_vain=False)

    def _row_set(
        self,
        plan: SlicePlan,
        entries: SliceEntries,
        statistics: SliceStatistics,
        *,
        thrifty: bool,
    ) -> RowSet:
        predicate = self.query.normal_form
        assert predicate is not None, "a query without predicate is never read by index"
        known = load_constants(self.settings)
        if thrifty and self._weighs(plan):
            storage = self.table.storage
            careful = CarefulLookups(self.query, plan, entries, storage, self.settings, known)
            found = careful.found(predicate)
            if found.why:
                statistics.note = found.why
                return found.rows
            rows = found.rows
        else:
            lookups = EntryLookups(entries, thrifty, row_steps=known.row_steps)
            rows = candidate_rows(predicate, lookups)
        statistics.candidates = None if rows.rows is None else len(rows.rows)
        return rows

    def _weighs(self, plan: SlicePlan) -> bool:
        """Whether look-ups whose rows are read are weighed against a scan as they go on."""
        predicate = self.query.normal_form
        assert predicate is not None, "a query without predicate is never read by index"
        if self.limit is not None or self.index_required:
            return False
        return is_soon_checked(predicate) and not has_few_rows(plan, plan.total)

    def _by_rows(
        self, plan: SlicePlan, rows: BitMap, footer: Footer, statistics: SliceStatistics
    ) -> Iterator[pa.RecordBatch]:
        """Exactly the given rows, page by page, unless reading more of the file costs less."""
        base_file = _base_file(plan)
        positions = row_positions(rows)
        storage = self.table.storage
        reader = RowReader(storage, base_file, footer, self.query.needed)
        done = 0
        try:
            wanted = positions if self.limit is None else positions[: self.limit]
            cost = reader.plan(wanted)
            remote = not storage.is_local
            reading = cheapest_reading(cost, self.settings, remote=remote, rows=len(wanted))
            self.in_vain.tell(plan.expected, plan.total, in_vain=reading is Reading.FILE)
            if reading is not Reading.PAGES and not self.index_required:
                what = "the file" if reading is Reading.FILE else "their row groups"
                statistics.note = (
                    f"{cost.pages} pages hold the rows: reading {what} whole is cheaper"
                )
                yield from self._scanned(plan, statistics, holding=positions)
                return
            for read in reader.batches(positions, limit=self.limit):
                statistics.add_read(read.did)
                for batch in read.batches:
                    yield self._kept(batch, statistics)
                done += read.count
        except ParquetReadError as error:
            statistics.note = unreadable_by_row(base_file, error)
            left = positions[done:]
            yield from self._scanned(plan, statistics, holding=left, readable_by_row=False)

    def _scanned(
        self,
        plan: SlicePlan,
        statistics: SliceStatistics,
        *,
        holding: RowIds | None = None,
        readable_by_row: bool = True,
        trusted: bool = True,
    ) -> Iterator[pa.RecordBatch]:
        """The base file's matching rows; where `holding` is given, none but these rows are held
        against the predicate.

        Args:
            trusted: Whether the footer that an open entry has of the file may be gone by.
        """
        footer = None
        if trusted and self.table.storage.is_local:
            footers = map(self.pool.open_footer, plan.entries or plan.unused)
            footer = next((each for each in footers if each is not None), None)
        scan = self._scan(_base_file(plan), self.query.needed, statistics)
        scan = replace(scan, footer=footer)
        if holding is None:
            rows = scan.candidates(self.query.normal_form)
        elif readable_by_row:
            rows = scan.rows(holding)
        else:
            rows = scan.rows_by_arrow(holding)
        for batch in rows:
            yield self._kept(batch, statistics)

    def _scan(
        self, base_file: BaseFile, columns: pa.Schema, statistics: SliceStatistics
    ) -> FileScan:
        statistics.access = Access.SCAN
        storage, settings = self.table.storage, self.settings
        return FileScan(storage, base_file, columns, settings, statistics, self.limit)

    def _merged(self, plan: SlicePlan, statistics: SliceStatistics) -> Iterator[pa.RecordBatch]:
        roots = self.query.needed_roots
        for batch in self.table.read_slice(
            plan.file_slice, roots, as_of=self.instant, schema=self.query.table
        ):
            yield self._kept(batch, statistics)

    def _kept(self, batch: pa.RecordBatch, statistics: SliceStatistics) -> pa.RecordBatch:
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
                remedy=None if cause is None else cause.remedy,
            ) from cause


def _base_file(plan: SlicePlan) -> BaseFile:
    base_file = plan.file_slice.base_file
    assert base_file is not None, "only slices with log files lack a base file, and are merged"
    return base_file
