"""Reads one file slice as its plan says: by row ids, by a scan, or merged with its log files.

Whatever the way, the query's predicate is checked on every row read: an index only narrows
(design, rule 1). Whatever is wrong with an entry, its slice is scanned (rule 3).
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hudi_index_parquet import Footer, ParquetReadError
from pyroaring import BitMap

from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexRequired, IndexServiceError, StorageFailed
from hudi_index_service.optimizer.access import Reading, cheapest_reading
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.predicate import evaluate, keep
from hudi_index_service.read.query import Query
from hudi_index_service.read.reader_pool import ReaderPool
from hudi_index_service.read.row_group_bounds import (
    places_in,
    row_groups_holding,
    row_groups_to_read,
)
from hudi_index_service.read.row_ids import RowSet, matching_rows
from hudi_index_service.read.row_reader import RowIds, RowReader, row_positions
from hudi_index_service.read.slice_entries import INDEX_FAILURES, SliceEntries
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.table.base_file import column_bytes, present_columns, read_columns
from hudi_index_service.table.parquet_file import is_broken_text, open_parquet
from hudi_index_service.table.protocol import BaseFile, HudiTable

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SliceReader:
    """Reads the slices of one query.

    Attributes:
        instant: The snapshot's instant, to which log files are merged.
        limit: How many rows are wanted at all: no more are read by row id before somebody asks
            for more; None for all.
        index_required: Whether rows may be had through the index alone: nothing is scanned then,
            be it damaged or a scan be cheaper.
    """

    table: HudiTable
    query: Query
    instant: str
    pool: ReaderPool
    settings: Settings
    limit: int | None = None
    index_required: bool = False

    def batches(self, plan: SlicePlan, statistics: SliceStatistics) -> Iterator[pa.RecordBatch]:
        """The slice's matching rows with the query's output columns.

        Raises:
            FileNotFoundError: a file of the slice is gone.
            TableFeatureUnsupported: the slice cannot be read right here.
            IndexRequired: it would have to be scanned, and must not be.
        """
        reader = self._in_partition(plan)
        if plan.access is Access.INDEX:
            yield from reader._by_index(plan, statistics)
        elif plan.access is Access.MERGE:
            yield from reader._merged(plan, statistics)
        elif plan.access is Access.SCAN:
            yield from reader._scanned(_base_file(plan), statistics)

    def _in_partition(self, plan: SlicePlan) -> "SliceReader":
        """Itself, for rows of the slice's partition."""
        return replace(self, query=self.query.where_known(plan.values)) if plan.values else self

    def settled_rows(self, plan: SlicePlan, statistics: SliceStatistics) -> BitMap | None:
        """The matching row ids where the index alone knows them; None where rows have to be read.
        If the index could not be asked, the reason is in the statistics."""
        if plan.access is Access.SKIP:
            return BitMap()
        if plan.access is not Access.INDEX:
            return None
        try:
            with SliceEntries.leased(plan, self.pool) as entries:
                return self._in_partition(plan)._row_set(entries, statistics).settled
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
        for batch in self._whole(_base_file(plan), needed, statistics):
            kept = np.ones(batch.num_rows, dtype=bool)
            if predicate is not None:
                truth = evaluate(predicate, batch).fill_null(False)
                kept = truth.to_numpy(zero_copy_only=False)
            found |= BitMap((np.flatnonzero(kept) + start).astype(np.uint32))
            start += batch.num_rows
        statistics.rows_checked, statistics.rows_returned = start, len(found)
        return found

    def _by_index(self, plan: SlicePlan, statistics: SliceStatistics) -> Iterator[pa.RecordBatch]:
        base_file = _base_file(plan)
        try:
            with SliceEntries.leased(plan, self.pool) as entries:
                found = self._row_set(entries, statistics)
                footer = entries.footer()
        except INDEX_FAILURES as error:
            self._fall_back(plan, error, statistics)
            yield from self._scanned(base_file, statistics)
            return
        if found.rows is None:
            self._refuse_scan(plan, "the index narrowed nothing")
            statistics.note = "the index narrowed nothing"
            yield from self._scanned(base_file, statistics)
        elif found.rows:
            yield from self._by_rows(base_file, found.rows, footer, statistics)

    def _row_set(self, entries: SliceEntries, statistics: SliceStatistics) -> RowSet:
        predicate = self.query.normal_form
        assert predicate is not None, "a query without predicate is never read by index"
        found = matching_rows(predicate, entries.rows_by_index_or_pages, entries.total)
        statistics.candidates = None if found.rows is None else len(found.rows)
        return found

    def _by_rows(
        self, base_file: BaseFile, rows: BitMap, footer: Footer, statistics: SliceStatistics
    ) -> Iterator[pa.RecordBatch]:
        """Exactly the given rows, page by page, unless reading more of the file costs less."""
        positions = row_positions(rows)
        storage = self.table.storage
        reader = RowReader(storage, base_file, footer, self.query.needed)
        done = 0
        try:
            cost = reader.plan(positions if self.limit is None else positions[: self.limit])
            reading = cheapest_reading(cost, self.settings, remote=not storage.is_local)
            if reading is not Reading.PAGES and not self.index_required:
                what = "the file" if reading is Reading.FILE else "their row groups"
                statistics.note = (
                    f"{cost.pages} pages hold the rows: reading {what} whole is cheaper"
                )
                yield from self._scanned(base_file, statistics, holding=positions)
                return
            for read in reader.batches(positions, limit=self.limit):
                statistics.add_read(read.did)
                for batch in read.batches:
                    yield self._kept(batch, statistics)
                done += read.count
        except ParquetReadError as error:
            statistics.note = _unreadable_by_row(base_file, error)
            yield from self._scanned(base_file, statistics, start_row=int(positions[done]))

    def _scanned(
        self,
        base_file: BaseFile,
        statistics: SliceStatistics,
        *,
        holding: RowIds | None = None,
        start_row: int = 0,
    ) -> Iterator[pa.RecordBatch]:
        """The base file's matching rows, from `start_row` on, out of the row groups that may hold
        any; where `holding` is given, none but these rows are held against the predicate."""
        places: RowIds | None = None

        def row_groups(file: pq.ParquetFile) -> list[int]:
            nonlocal places
            if start_row:
                return list(range(file.metadata.num_row_groups))
            if holding is not None:
                numbers = row_groups_holding(file, holding)
                places = places_in(file, numbers, holding)
                return numbers
            return row_groups_to_read(file, self.query.normal_form)

        start, passed_over = 0, start_row
        for batch in self._whole(base_file, self.query.needed, statistics, row_groups):
            if places is not None:
                first, end = np.searchsorted(places, (start, start + batch.num_rows))
                rest = batch.take(pa.array(places[first:end] - start))
                start += batch.num_rows
            else:
                rest = batch.slice(min(passed_over, batch.num_rows))
                passed_over -= batch.num_rows - rest.num_rows
            yield self._kept(rest, statistics)

    def _whole(
        self,
        base_file: BaseFile,
        columns: pa.Schema,
        statistics: SliceStatistics,
        row_groups: Callable[[pq.ParquetFile], list[int]] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """All rows of a base file, or of the row groups that are picked, in row order."""
        statistics.access = Access.SCAN
        with open_parquet(self.table.storage, base_file.path) as file:
            present = present_columns(file.schema_arrow, columns, source=base_file.path)
            picked = None if row_groups is None else row_groups(file)
            statistics.bytes_read += column_bytes(file, present, picked)
            yield from read_columns(
                file,
                columns,
                batch_rows=self.settings.build.batch_rows,
                source=base_file.path,
                row_groups=picked,
            )

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
        log.warning("%s is scanned: %s", plan.file_slice.name, error)
        statistics.note = reason

    def _refuse_scan(
        self, plan: SlicePlan, reason: str, cause: IndexServiceError | None = None
    ) -> None:
        if self.index_required:
            raise IndexRequired(
                f"{plan.file_slice.name} cannot be read through an index: {reason}."
            ) from cause


def _base_file(plan: SlicePlan) -> BaseFile:
    base_file = plan.file_slice.base_file
    assert base_file is not None, "only slices with log files lack a base file, and are merged"
    return base_file


def _unreadable_by_row(base_file: BaseFile, error: ParquetReadError) -> str:
    """Why a base file is scanned that the row reader cannot read: a scan may, or says what is
    damaged.

    Raises:
        StorageFailed: a page is not the one that was written.
    """
    if "CRC" in str(error):
        raise StorageFailed(
            f"{base_file.path} cannot be read: {error}.",
            remedy="The table itself is damaged; see what Spark says of this file.",
        ) from error
    if is_broken_text(error):
        return "it holds text that is no UTF-8: only a scan reads it"
    return f"its rows cannot be read one by one: {error}"
