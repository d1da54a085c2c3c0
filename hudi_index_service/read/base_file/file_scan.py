"""Reads the rows of a base file without an entry: all, or those that its statistics leave.

The row reader decodes a local file page by page in several threads; where it cannot go on, Arrow
reads the rest. For a remote file, Arrow fetches the columns of a row group together, unless the
column index leaves so few pages that reading these is faster.
"""

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from hudi_index_parquet import Footer, ParquetReadError, file_footer
from pyroaring import BitMap

from hudi_index_service.arrow import numbers_array
from hudi_index_service.config import Settings
from hudi_index_service.hudi.files.base_file import (
    CALENDAR_KEYS,
    column_bytes,
    may_be_in_legacy_calendar,
    present_columns,
    read_columns,
    refuse_legacy_calendar,
)
from hudi_index_service.hudi.files.parquet_file import (
    FIRST_ROWS,
    damage_named,
    open_parquet,
    row_group_rows,
    row_source,
)
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.optimizer.decide import page_indexes_pay, pages_pay_in_portions
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.read.base_file.kept_pages import column_sizes, kept_pages
from hudi_index_service.read.base_file.native_condition import native_condition
from hudi_index_service.read.base_file.page_bounds import PageBounds
from hudi_index_service.read.base_file.row_group_bounds import (
    row_groups_holding,
    row_groups_to_read,
)
from hudi_index_service.read.base_file.row_reader import (
    NumberedRows,
    RowIds,
    RowReader,
    numbered_rows,
    positions,
    row_positions,
)
from hudi_index_service.read.base_file.value_bounds import stored_type
from hudi_index_service.read.row_ids import matching_rows
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.storage.store import Storage

if TYPE_CHECKING:
    import pyarrow.parquet as pq

log = logging.getLogger(__name__)

FooterCheck = Callable[[Mapping[bytes, bytes] | None], bool]
"""Whether a base file may hold matching rows, by the key-value metadata of its footer."""


@dataclass(frozen=True, slots=True)
class FileScan:
    """Reads one base file.

    Attributes:
        columns: The columns to read, in the table's types.
        statistics: Counts the bytes read.
        limit: The number of matches needed, to read small portions; None for all.
        footer: The footer of a local base file from an open entry. The file is then read without
            opening it first, as by index. Files that are refused for other contents of the footer
            have no entry. It has no key-value metadata.
        footer_check: Rules out the file before `candidates` reads any of its rows; None for never.
        within: The rows that `candidates` reads, from the start of a row group to the end of one;
            None for all.
        output: Those of the columns that are needed of rows of which the predicate is TRUE; None
            for all.
        numbered: Whether the row ids of `candidates` are needed.

    Every method raises FileNotFoundError if the file is gone, StorageFailed if it is damaged,
    NeedsSpark if it cannot be read without Spark, and PermissionDenied.
    """

    storage: Storage
    base_file: BaseFile
    columns: pa.Schema
    settings: Settings
    statistics: SliceStatistics
    limit: int | None = None
    footer: Footer | None = None
    footer_check: FooterCheck | None = None
    within: range | None = None
    output: Sequence[str] | None = None
    numbered: bool = True

    def candidates(self, predicate: Predicate | None) -> Iterator[NumberedRows]:
        """The rows of the row groups and pages where a predicate in negation normal form may be
        TRUE; all rows for None. Of a local file, without those rows for which the row reader can
        tell that it is not."""
        rows: RowIds | range
        if self.footer is not None and self.footer_check is None:
            # Before the statistics of other times exclude pages.
            present_columns(self.footer.schema, self.columns, source=self.base_file.path)
            rows = range(self.footer.rows) if self.within is None else self.within
            if predicate is not None:
                rows = self._rows_of_matching_pages(self.footer, predicate, rows)
            yield from self._rows(self.footer, rows, predicate)
            return
        with self._opened() as file:
            if self.footer_check is not None and not self.footer_check(file.metadata.metadata):
                return
            present = self._checked_columns(file)
            groups = row_groups_to_read(file, predicate, self.within)
            rows = _rows_of(file, groups)
            footer: Footer | None = None
            local = self.storage.is_local
            size = 0 if local or predicate is None else column_bytes(file, present, groups)
            if len(rows) and (local or page_indexes_pay(size, self.settings)):
                footer = own_footer(self.storage, self.base_file)
            if predicate is not None and footer is not None:
                rows = self._rows_of_matching_pages(footer, predicate, rows)
                if not local and not self._by_pages(footer, present, rows):
                    rows, footer = _rows_of(file, groups), None
            yield from self._rows(footer, rows, predicate, file)

    def rows(self, rows: RowIds) -> Iterator[NumberedRows]:
        """The rows at these ascending positions."""
        if self.footer is not None:
            yield from self._rows(self.footer, rows)
            return
        with self._opened() as file:
            self._checked_columns(file)
            footer = own_footer(self.storage, self.base_file) if self.storage.is_local else None
            yield from self._rows(footer, rows, file=file)

    def rows_by_arrow(self, rows: RowIds) -> Iterator[NumberedRows]:
        """The same by Arrow, after the row reader has failed on the file."""
        return self._rows(None, rows)

    def _opened(self) -> "pq.ParquetFile":
        return open_parquet(self.storage, self.base_file.path, self.base_file.size)

    def _checked_columns(self, file: "pq.ParquetFile") -> list[str]:
        """The paths of the columns that the file has."""
        path = self.base_file.path
        present = present_columns(file.schema_arrow, self.columns, source=path)
        refuse_legacy_calendar(file.metadata, present, source=path)
        return present

    def _rows_of_matching_pages(
        self, footer: Footer, predicate: Predicate, rows: RowIds | range
    ) -> RowIds | range:
        """The given rows whose pages may hold a match; all if the row reader tests the predicate in
        pages that are kept, which takes less time than to compare the bounds of these."""
        native = native_condition(predicate, footer.schema)
        if native is not None and native.is_whole:
            # A condition that is never TRUE may name others.
            known = [each for each in predicate.columns() if stored_type(footer.schema, [each])]
            sizes = column_sizes(self.storage, self.base_file, footer, known)
            if sizes is not None and not any(to_read for to_read, _ in sizes):
                return rows
        source = row_source(self.storage, self.base_file.path)
        bounds = PageBounds(footer, source, self.base_file.size)
        candidates = matching_rows(predicate, bounds.rows).possible
        if candidates is None:
            return rows
        if isinstance(rows, range):
            return row_positions(candidates & BitMap(rows))
        return np.intersect1d(positions(rows), row_positions(candidates), assume_unique=True)

    def _by_pages(self, footer: Footer, present: Sequence[str], rows: RowIds | range) -> bool:
        """Whether reading a remote file's pages is faster than whole columns."""
        try:
            plan = footer.plan(positions(rows).data, present)
        except ParquetReadError:
            return False
        return pages_pay_in_portions(plan, self.settings)

    def _rows(
        self,
        footer: Footer | None,
        rows: RowIds | range,
        predicate: Predicate | None = None,
        file: "pq.ParquetFile | None" = None,
    ) -> Iterator[NumberedRows]:
        """The rows by the row reader, if there is a footer for it; what it cannot read by Arrow.

        Args:
            file: The base file, if Arrow has opened it already.
        """
        rows_read = 0
        if footer is not None:
            rows_read = yield from self._by_row(footer, rows, predicate)
        if rows_read < len(rows):
            left = rows[rows_read:]
            with self._opened() if file is None else nullcontext(file) as opened:
                yield from numbered_rows(left, self._by_arrow(opened, left))

    def _by_row(
        self, footer: Footer, rows: RowIds | range, predicate: Predicate | None
    ) -> Generator[NumberedRows, None, int]:
        """Yields rows by the row reader, of a local file without those of which it can tell that
        the predicate is not TRUE; returns the number of rows with which it could deal."""
        rows_read = 0
        reader = RowReader(self.storage, self.base_file, footer, self.columns, is_scan=True)
        limit = None if self.limit is None else max(self.limit, FIRST_ROWS)
        portions = reader.batches(
            rows, limit=limit, predicate=predicate, output=self.output, numbered=self.numbered
        )
        try:
            while rows_read < len(rows):
                with damage_named(self.base_file.path):
                    portion = next(portions)
                self.statistics.bytes_read += portion.did.bytes
                self.statistics.rows_checked += portion.count - portion.found
                rows_read += portion.count
                yield from portion.numbered()
        except ParquetReadError as error:
            log.info("%s is read by Arrow: %s", self.base_file.path, error)
        return rows_read

    def _by_arrow(self, file: "pq.ParquetFile", rows: RowIds | range) -> Iterator[pa.RecordBatch]:
        groups, places = list(range(file.metadata.num_row_groups)), None
        if len(rows) < file.metadata.num_rows:
            row_ids = positions(rows)
            groups = row_groups_holding(file, row_ids)
            places = np.searchsorted(positions(_rows_of(file, groups)), row_ids)
        present = self._checked_columns(file)
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
            yield batch.take(numbers_array(places[first:end] - start))
            start += batch.num_rows


def own_footer(storage: Storage, base_file: BaseFile) -> Footer | None:
    """The footer that the row reader needs, from the base file itself; None if the row reader
    cannot read it, or if its dates may be in the legacy calendar, which Arrow's reader tells."""
    source = row_source(storage, base_file.path)
    try:
        with damage_named(base_file.path):
            footer, pairs = file_footer(
                source, CALENDAR_KEYS, size=base_file.size, pages=kept_pages()
            )
            return None if may_be_in_legacy_calendar(pairs) else footer
    except ParquetReadError as error:
        log.info("%s is read by Arrow: %s", base_file.path, error)
        return None


def _rows_of(file: "pq.ParquetFile", groups: Sequence[int]) -> RowIds | range:
    """The positions of the rows of these row groups, whose numbers ascend."""
    all_rows = row_group_rows(file)
    if groups and len(groups) == groups[-1] + 1 - groups[0]:
        return range(all_rows[groups[0]].start, all_rows[groups[-1]].stop)
    runs = [np.arange(all_rows[number].start, all_rows[number].stop) for number in groups]
    return np.concatenate([np.empty(0, dtype=np.int64), *runs])
