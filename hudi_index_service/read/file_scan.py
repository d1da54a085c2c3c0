"""Rows of a base file without an entry: all of it, or what its own statistics leave.

A local file is decoded by the row reader, page by page on several threads, and by Arrow from where
the row reader cannot go on. Of a remote one Arrow fetches the columns of a row group together,
unless the column index leaves so few pages that these are had sooner.
"""

import logging
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hudi_index_parquet import Footer, ParquetReadError, stripped_footer

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.access import PRUNING_BYTES, Reading, cheapest_reading
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.read.page_bounds import PageBounds
from hudi_index_service.read.row_group_bounds import (
    places_in,
    row_groups_holding,
    row_groups_to_read,
)
from hudi_index_service.read.row_ids import matching_rows
from hudi_index_service.read.row_reader import (
    RowIds,
    RowReader,
    positions,
    row_positions,
)
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.storage import Storage
from hudi_index_service.table.base_file import (
    column_bytes,
    present_columns,
    read_columns,
    refuse_legacy_calendar,
)
from hudi_index_service.table.parquet_file import damage_named, open_parquet, row_source
from hudi_index_service.table.protocol import BaseFile
from hudi_index_service.table.row_batches import FIRST_ROWS

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileScan:
    """Reads one base file.

    Attributes:
        columns: The columns to read, in the table's types.
        statistics: Are told the bytes that were read.
        limit: How many matches are wanted: little is read at once then; None for all.
        footer: Of a local base file, where an open entry has it: the file is then read without
            being opened first, as its rows are by index. What is refused for what else stands in
            the footer had no entry built.

    Every method raises FileNotFoundError where the file is gone, StorageFailed where it is damaged,
    NeedsSpark where it cannot be read right here, and PermissionDenied.
    """

    storage: Storage
    base_file: BaseFile
    columns: pa.Schema
    settings: Settings
    statistics: SliceStatistics
    limit: int | None = None
    footer: Footer | None = None

    def everything(self) -> Iterator[pa.RecordBatch]:
        """All rows, in their order."""
        with open_parquet(self.storage, self.base_file.path, self.base_file.size) as file:
            self._checked(file)
            footer = self._footer() if self.storage.is_local else None
            yield from self._rows(file, footer, range(file.metadata.num_rows))

    def candidates(self, predicate: Predicate | None) -> Iterator[pa.RecordBatch]:
        """The rows of the row groups and pages in which the predicate, which is in negation normal
        form, may be TRUE; all for None."""
        if self.footer is not None:
            known: RowIds | range = range(self.footer.rows)
            if predicate is not None:
                known = self._left(self.footer, predicate, known)
            yield from self._by_footer(self.footer, known)
            return
        with open_parquet(self.storage, self.base_file.path, self.base_file.size) as file:
            present = self._checked(file)
            groups = row_groups_to_read(file, predicate)
            rows: RowIds | range = _rows_of(file, groups)
            footer: Footer | None = None
            local = self.storage.is_local
            large = predicate is not None and column_bytes(file, present, groups) > PRUNING_BYTES
            if len(rows) and (local or large):
                footer = self._footer()
            if predicate is not None and footer is not None:
                rows = self._left(footer, predicate, rows)
                if not local and not self._by_pages(footer, present, rows):
                    rows, footer = _rows_of(file, groups), None
            yield from self._rows(file, footer, rows)

    def rows(self, rows: RowIds) -> Iterator[pa.RecordBatch]:
        """The rows at these positions, which are ascending."""
        if self.footer is not None:
            yield from self._by_footer(self.footer, rows)
            return
        with open_parquet(self.storage, self.base_file.path, self.base_file.size) as file:
            self._checked(file)
            footer = self._footer() if self.storage.is_local else None
            yield from self._rows(file, footer, rows)

    def rows_by_arrow(self, rows: RowIds) -> Iterator[pa.RecordBatch]:
        """The same, where the row reader has failed on the file."""
        with open_parquet(self.storage, self.base_file.path, self.base_file.size) as file:
            yield from self._by_arrow(file, rows)

    def _checked(self, file: pq.ParquetFile) -> list[str]:
        """The paths in the file of the columns that it has."""
        path = self.base_file.path
        present = present_columns(file.schema_arrow, self.columns, source=path)
        refuse_legacy_calendar(file.metadata, present, source=path)
        return present

    def _footer(self) -> Footer | None:
        """The footer as the row reader takes it; None if it cannot."""
        source = row_source(self.storage, self.base_file.path)
        try:
            return Footer(stripped_footer(source, size=self.base_file.size))
        except ParquetReadError as error:
            log.info("%s is read by Arrow: %s", self.base_file.path, error)
            return None

    def _left(self, footer: Footer, predicate: Predicate, rows: RowIds | range) -> RowIds | range:
        """Those of the rows whose pages may hold a match."""
        source = row_source(self.storage, self.base_file.path)
        bounds = PageBounds(footer, source, self.base_file.size)
        left = matching_rows(predicate, bounds.rows, footer.rows).rows
        if left is None:
            return rows
        if len(rows) == footer.rows:
            return row_positions(left)
        return np.intersect1d(positions(rows), row_positions(left), assume_unique=True)

    def _by_pages(self, footer: Footer, present: Sequence[str], rows: RowIds | range) -> bool:
        """Whether a remote file's pages that hold the rows are had sooner than whole chunks: they
        come portion by portion, which takes a request after the other."""
        try:
            plan = footer.plan(positions(rows).data, present)
        except ParquetReadError:
            return False
        cheapest = cheapest_reading(plan, self.settings, remote=True)
        return cheapest is Reading.PAGES and 2 * plan.page_bytes <= plan.chunk_bytes

    def _rows(
        self, file: pq.ParquetFile, footer: Footer | None, rows: RowIds | range
    ) -> Iterator[pa.RecordBatch]:
        done = 0
        if footer is not None:
            done = yield from self._by_row(footer, rows)
            if done == len(rows):
                return
        yield from self._by_arrow(file, rows[done:])

    def _by_footer(self, footer: Footer, rows: RowIds | range) -> Iterator[pa.RecordBatch]:
        done = yield from self._by_row(footer, rows)
        if done < len(rows):
            with open_parquet(self.storage, self.base_file.path, self.base_file.size) as file:
                yield from self._by_arrow(file, rows[done:])

    def _by_row(self, footer: Footer, rows: RowIds | range) -> Generator[pa.RecordBatch, None, int]:
        """Rows by the row reader; returns how many it could read."""
        done = 0
        reader = RowReader(self.storage, self.base_file, footer, self.columns)
        limit = None if self.limit is None else max(self.limit, FIRST_ROWS)
        reads = reader.batches(rows, limit=limit)
        try:
            while done < len(rows):
                with damage_named(self.base_file.path):
                    read = next(reads)
                self.statistics.bytes_read += read.did.bytes
                yield from read.batches
                done += read.count
        except ParquetReadError as error:
            log.info("%s is read by Arrow: %s", self.base_file.path, error)
        return done

    def _by_arrow(self, file: pq.ParquetFile, rows: RowIds | range) -> Iterator[pa.RecordBatch]:
        groups, places = list(range(file.metadata.num_row_groups)), None
        if len(rows) < file.metadata.num_rows:
            wanted = positions(rows)
            groups = row_groups_holding(file, wanted)
            places = places_in(file, groups, wanted)
        present = self._checked(file)
        self.statistics.bytes_read += column_bytes(file, present, groups)
        start = 0
        for batch in read_columns(
            file,
            self.columns,
            batch_rows=self.settings.build.batch_rows,
            source=self.base_file.path,
            row_groups=groups,
        ):
            if places is None:
                yield batch
                continue
            first, end = np.searchsorted(places, (start, start + batch.num_rows))
            yield batch.take(pa.array(places[first:end] - start))
            start += batch.num_rows


def _rows_of(file: pq.ParquetFile, groups: Sequence[int]) -> RowIds | range:
    """Positions of the rows of these row groups."""
    counts = [
        file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)
    ]
    starts = [0, *accumulate(counts)]
    if len(groups) == len(counts):
        return range(starts[-1])
    runs = [np.arange(starts[number], starts[number + 1]) for number in groups]
    return np.concatenate([np.empty(0, dtype=np.int64), *runs])
