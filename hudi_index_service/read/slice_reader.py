"""Reads one file slice as its plan says: by row ids, by a scan, or merged with its log files.

Whatever the way, the query's predicate is checked on every row read: an index only narrows
(design, rule 1). Whatever is wrong with an entry, its slice is scanned (rule 3).
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import hudi_index_parquet
import numpy as np
import pyarrow as pa
from hudi_index_parquet import ParquetReadError
from pyroaring import BitMap

from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexServiceError, StorageFailed
from hudi_index_service.optimizer.access import whole_file_is_cheaper
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.predicate import evaluate, keep
from hudi_index_service.read.query import Query
from hudi_index_service.read.reader_pool import ReaderPool
from hudi_index_service.read.row_ids import RowSet, matching_rows
from hudi_index_service.read.slice_entries import INDEX_FAILURES, SliceEntries
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.table.base_file import (
    align,
    column_bytes,
    is_broken_text,
    open_parquet,
    present_columns,
    read_columns,
    row_source,
)
from hudi_index_service.table.protocol import BaseFile, HudiTable

log = logging.getLogger(__name__)

_ROWS_AT_ONCE = 65_536  # row ids per call of the row reader: what a batch holds at most


@dataclass(frozen=True, slots=True)
class SliceReader:
    """Reads the slices of one query.

    Attributes:
        instant: The snapshot's instant, to which log files are merged.
    """

    table: HudiTable
    query: Query
    instant: str
    pool: ReaderPool
    settings: Settings

    def batches(self, plan: SlicePlan, statistics: SliceStatistics) -> Iterator[pa.RecordBatch]:
        """The slice's matching rows with the query's output columns.

        Raises:
            FileNotFoundError: a file of the slice is gone.
            TableFeatureUnsupported: the slice cannot be read right here.
        """
        if plan.access is Access.INDEX:
            yield from self._by_index(plan, statistics)
        elif plan.access is Access.MERGE:
            yield from self._merged(plan, statistics)
        else:
            yield from self._scanned(_base_file(plan), statistics)

    def settled_rows(self, plan: SlicePlan, statistics: SliceStatistics) -> BitMap | None:
        """The matching row ids where the index alone knows them; None where rows have to be read.
        If the index could not be asked, the reason is in the statistics."""
        if plan.access is not Access.INDEX:
            return None
        try:
            with SliceEntries.leased(plan, self.pool) as entries:
                return self._row_set(entries, statistics).settled
        except INDEX_FAILURES as error:
            self._fall_back(plan, error, statistics)
            return None

    def matching_rows(self, plan: SlicePlan, statistics: SliceStatistics) -> BitMap:
        """The row ids of a slice without log files whose rows match, residual included."""
        settled = self.settled_rows(plan, statistics)
        if settled is not None:
            return settled
        predicate, needed = self.query.predicate, self.query.counting().needed
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
                metadata = entries.parquet_metadata()
        except INDEX_FAILURES as error:
            self._fall_back(plan, error, statistics)
            yield from self._scanned(base_file, statistics)
            return
        if found.rows is None:
            statistics.note = "the index narrowed nothing"
            yield from self._scanned(base_file, statistics)
        elif found.rows:
            yield from self._by_rows(base_file, found.rows, metadata, statistics)

    def _row_set(self, entries: SliceEntries, statistics: SliceStatistics) -> RowSet:
        predicate = self.query.normal_form
        assert predicate is not None, "a query without predicate is never read by index"
        found = matching_rows(predicate, entries.rows, entries.total)
        statistics.candidates = None if found.rows is None else len(found.rows)
        return found

    def _by_rows(
        self, base_file: BaseFile, rows: BitMap, metadata: bytes, statistics: SliceStatistics
    ) -> Iterator[pa.RecordBatch]:
        """Exactly the given rows, page by page, unless reading the file whole is cheaper."""
        positions = np.frombuffer(rows.to_array(), dtype=np.uint32).astype(np.int64)
        source = row_source(self.table.storage, base_file.path)
        try:
            stored, _ = hudi_index_parquet.read_rows(
                source, positions[:0].data, size=base_file.size, metadata=metadata
            )
            present = present_columns(stored.schema, self.query.needed, source=base_file.path)
            cost = hudi_index_parquet.plan_rows(metadata, positions.data, present)
        except ParquetReadError as error:
            raise _unreadable(base_file, error) from error
        if whole_file_is_cheaper(cost, self.settings):
            statistics.note = f"{cost.pages} pages hold the rows: reading the file whole is cheaper"
            yield from self._scanned(base_file, statistics)
            return
        for start in range(0, len(positions), _ROWS_AT_ONCE):
            chunk = positions[start : start + _ROWS_AT_ONCE]
            try:
                table, read = hudi_index_parquet.read_rows(
                    source, chunk.data, present, size=base_file.size, metadata=metadata
                )
            except ParquetReadError as error:
                if not is_broken_text(error):
                    raise _unreadable(base_file, error) from error
                statistics.note = "it holds text that is no UTF-8: only a scan reads it"
                yield from self._scanned(base_file, statistics, start_row=int(chunk[0]))
                return
            statistics.pages += read.pages
            statistics.bytes_read += read.bytes
            for batch in _batches(table, len(chunk)):
                aligned = align(batch, self.query.needed, source=base_file.path)
                yield self._kept(aligned, statistics)

    def _scanned(
        self, base_file: BaseFile, statistics: SliceStatistics, *, start_row: int = 0
    ) -> Iterator[pa.RecordBatch]:
        passed_over = start_row
        for batch in self._whole(base_file, self.query.needed, statistics):
            rest = batch.slice(min(passed_over, batch.num_rows))
            passed_over -= batch.num_rows - rest.num_rows
            yield self._kept(rest, statistics)

    def _whole(
        self, base_file: BaseFile, columns: pa.Schema, statistics: SliceStatistics
    ) -> Iterator[pa.RecordBatch]:
        """All rows of a base file, in row order."""
        statistics.access = Access.SCAN
        with open_parquet(self.table.storage, base_file.path) as file:
            present = present_columns(file.schema_arrow, columns, source=base_file.path)
            statistics.bytes_read += column_bytes(file, present)
            yield from read_columns(
                file, columns, batch_rows=self.settings.build.batch_rows, source=base_file.path
            )

    def _merged(self, plan: SlicePlan, statistics: SliceStatistics) -> Iterator[pa.RecordBatch]:
        roots = self.query.needed_roots
        for batch in self.table.read_slice(plan.file_slice, roots, as_of=self.instant):
            yield self._kept(batch, statistics)

    def _kept(self, batch: pa.RecordBatch, statistics: SliceStatistics) -> pa.RecordBatch:
        """The residual: the rows where the predicate is TRUE, with the output columns."""
        statistics.rows_checked += batch.num_rows
        if self.query.predicate is not None:
            batch = keep(self.query.predicate, batch)
        statistics.rows_returned += batch.num_rows
        return batch.select(self.query.output.names)

    def _fall_back(
        self,
        plan: SlicePlan,
        error: IndexServiceError,
        statistics: SliceStatistics,
    ) -> None:
        log.warning("%s is scanned: %s", plan.file_slice.name, error)
        statistics.note = error.message.rstrip(".")


def _base_file(plan: SlicePlan) -> BaseFile:
    base_file = plan.file_slice.base_file
    assert base_file is not None, "only slices with log files lack a base file, and are merged"
    return base_file


def _batches(table: pa.Table, rows: int) -> list[pa.RecordBatch]:
    """The table's batches; one of the right length where no column was read."""
    if table.num_columns == 0:
        return [pa.record_batch([pa.nulls(rows)], names=["_"]).select([])]
    return list(table.to_batches())


def _unreadable(base_file: BaseFile, error: ParquetReadError) -> StorageFailed:
    return StorageFailed(
        f"{base_file.path} cannot be read: {error}.",
        remedy='Try use_index="never"; if that fails too, the base file itself is damaged.',
    )
