"""Reads rows of a slice's base file: those that a look-up has found, from stored values or page by
page, or all that may match, by a scan."""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from hudi_index_parquet import Footer, ParquetReadError
from pyroaring import BitMap

from hudi_index_service.arrow import truths_array
from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryUnusable, NeedsSpark
from hudi_index_service.hudi.files.parquet_file import BATCH_BYTES
from hudi_index_service.optimizer.decide import is_small
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.read.base_file.file_scan import FileScan, FooterCheck, own_footer
from hudi_index_service.read.base_file.native_condition import native_condition
from hudi_index_service.read.base_file.row_reader import (
    NumberedRows,
    RowIds,
    RowReader,
    RowsRead,
    positions,
    row_positions,
    unreadable_by_row,
)
from hudi_index_service.read.slices.found_rows import FoundRows
from hudi_index_service.read.slices.reader_pool import ReaderPool
from hudi_index_service.storage.store import Storage

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BaseRows:
    """Reads rows of base files for one query.

    Attributes:
        limit: The number of rows needed, None for all.
        footer_check: See `FileScan`.
    """

    storage: Storage
    pool: ReaderPool
    settings: Settings
    limit: int | None = None
    footer_check: FooterCheck | None = None

    def of(self, found: FoundRows, *, numbered: bool = True) -> Iterator[NumberedRows]:
        """The rows that a look-up has found; all that may match if it has found none.

        Args:
            numbered: Whether the row ids are needed.
        """
        statistics = found.statistics
        row_ids = None if found.rows is None else row_positions(found.rows)
        if found.by_page is None or row_ids is None:
            if found.plan.access is not Access.SKIP and (row_ids is None or len(row_ids)):
                yield from self._by_scan(found, row_ids, numbered=numbered)
            return
        rows_read = 0
        if found.stored is not None:
            statistics.stored = True
            try:
                for read in self._by_page(found, found.stored, row_ids, numbered=numbered):
                    yield from read.numbered()
                    rows_read += read.count
                return
            # The base file has them, too.
            except (EntryUnusable, NeedsSpark, OSError, ParquetReadError) as error:
                statistics.stored = False
                path = found.stored.base_file.path
                log.warning("The values stored in %s are not used: %s", path, error)
        try:
            left = row_ids[rows_read:]
            for read in self._by_page(found, found.by_page, left, numbered=numbered):
                yield from read.numbered()
                rows_read += read.count
        except ParquetReadError as error:
            statistics.note = unreadable_by_row(found.plan.file_slice.base_file, error)
            found.readable_by_row = False
            yield from self._by_scan(found, row_ids[rows_read:], numbered=numbered)

    def _by_page(
        self, found: FoundRows, by_page: RowReader, row_ids: RowIds, *, numbered: bool
    ) -> Iterator[RowsRead]:
        """The rows with these ids, in order, without those of which the row reader can tell that
        the predicate is not TRUE."""
        query, statistics = found.query, found.statistics
        for read in by_page.batches(
            row_ids,
            limit=self.limit,
            predicate=None if query.predicate is None else query.normal_form,
            output=query.output.names,
            numbered=numbered,
        ):
            statistics.add_read(read.did)
            statistics.rows_checked += read.count - read.found
            yield read

    def _by_scan(
        self, found: FoundRows, row_ids: RowIds | None, *, numbered: bool
    ) -> Iterator[NumberedRows]:
        """The base file's rows that may match; with `row_ids`, just these rows."""
        query, base_file = found.query, found.plan.file_slice.base_file
        footer = None
        if found.trusted and self.storage.is_local:
            footer = self._open_footer(found)
            if footer is None:
                # Arrow's reader would parse Hudi's Bloom filter, too, which takes four times as
                # long.
                footer = own_footer(self.storage, base_file)
        found.statistics.access = Access.SCAN
        scan = FileScan(
            self.storage,
            base_file,
            query.needed,
            self.settings,
            found.statistics,
            self.limit,
            footer,
            self.footer_check,
            found.within,
            query.output.names,
            numbered,
        )
        if row_ids is None:
            yield from scan.candidates(query.normal_form)
        elif found.readable_by_row:
            yield from scan.rows(row_ids)
        else:
            yield from scan.rows_by_arrow(row_ids)

    def _open_footer(self, found: FoundRows) -> Footer | None:
        """The footer of a slice's base file, if one of its entries is open and may be trusted."""
        entries = found.plan.known_entries if found.trusted else ()
        footers = map(self.pool.open_footer, entries)
        return next((each for each in footers if each is not None), None)

    def whole_reader(self, found: FoundRows) -> RowReader | None:
        """Reads all rows of a local file that match, of a slice to be scanned, if it is small or
        they are only counted; None if that takes a scan."""
        base_file, is_count = found.plan.file_slice.base_file, not found.query.output.names
        if (
            not (is_count or is_small(base_file.size))
            or not self.storage.is_local
            or self.limit is not None
            or self.footer_check is not None
            or found.within is not None
        ):
            return None
        footer = self._open_footer(found) or own_footer(self.storage, base_file)
        if footer is None or not (is_count or footer.plain_bytes <= BATCH_BYTES):
            return None
        if not tests_all(found.query.normal_form, footer.schema):
            return None
        return RowReader(self.storage, base_file, footer, found.query.needed, is_scan=True)


def tests_all(predicate: Predicate | None, schema: pa.Schema) -> bool:
    """Whether the row reader tests a whole predicate where the values lie; so it does for None.

    Args:
        predicate: In negation normal form.
        schema: The columns as files have them.
    """
    if predicate is None:
        return True
    condition = native_condition(predicate, schema)
    return condition is not None and condition.is_whole


def without_replaced(
    read: Iterable[NumberedRows], replaced: BitMap | None
) -> Iterator[NumberedRows]:
    """The rows without those that are replaced."""
    gone = row_positions(replaced or BitMap())
    for each in read:
        if not len(gone):
            yield each
            continue
        counts = ~np.isin(positions(each.rows), gone)
        batch = each.batch.filter(truths_array(counts))
        yield NumberedRows(positions(each.rows)[counts], batch, each.are_results)
