"""Reads rows of a slice's base file: those that a look-up has found, from stored values or page by
page, or all that may match, by a scan."""

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from hudi_index_parquet import ParquetReadError
from pyroaring import BitMap

from hudi_index_service.arrow import truths_array
from hudi_index_service.errors import EntryUnusable, NeedsSpark
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.read.base_file.file_scan import FileScan, own_footer
from hudi_index_service.read.base_file.row_reader import (
    NumberedRows,
    RowIds,
    RowReader,
    RowsRead,
    numbered,
    positions,
    row_positions,
    unreadable_by_row,
)
from hudi_index_service.read.slices.found_rows import FoundRows
from hudi_index_service.read.statistics import SliceStatistics

if TYPE_CHECKING:
    from hudi_index_service.read.slices.slice_reader import SliceReader

log = logging.getLogger(__name__)

"""Errors of reading stored values. The base file is read instead."""


def rows_of(
    reader: "SliceReader", found: FoundRows, *, counts: bool = False
) -> Iterator[NumberedRows]:
    """The rows that a look-up has found; all that may match if it has found none.

    Args:
        counts: Whether the row ids are not needed.
    """
    plan, statistics = found.plan, found.statistics
    row_ids = None if found.rows is None else row_positions(found.rows)
    if found.by_page is None or row_ids is None:
        if plan.access is not Access.SKIP and (row_ids is None or len(row_ids)):
            yield from rows_by_scan(
                reader,
                plan,
                statistics,
                row_ids=row_ids,
                readable_by_row=found.readable_by_row,
                trusted=found.trusted,
                within=found.within,
                counts=counts,
            )
        return
    rows_read = 0
    if found.stored is not None:
        statistics.stored = True
        try:
            for read in _by_page(reader, found.stored, row_ids, statistics, counts=counts):
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
        for read in _by_page(reader, found.by_page, left, statistics, counts=counts):
            yield from read.numbered()
            rows_read += read.count
    except ParquetReadError as error:
        statistics.note = unreadable_by_row(base_file_of(plan), error)
        remaining = row_ids[rows_read:]
        yield from rows_by_scan(reader, plan, statistics, row_ids=remaining, readable_by_row=False)


def _by_page(
    reader: "SliceReader",
    by_page: RowReader,
    row_ids: RowIds,
    statistics: SliceStatistics,
    *,
    counts: bool,
) -> Iterator[RowsRead]:
    """The rows with these ids, in order, without those of which the row reader can tell that the
    predicate is not TRUE."""
    query = reader.query
    for read in by_page.batches(
        row_ids,
        limit=reader.limit,
        predicate=None if query.predicate is None else query.normal_form,
        output=query.output.names,
        counts=counts,
    ):
        statistics.add_read(read.did)
        statistics.rows_checked += read.count - read.found
        yield read


def rows_by_scan(
    reader: "SliceReader",
    plan: SlicePlan,
    statistics: SliceStatistics,
    *,
    row_ids: RowIds | None = None,
    readable_by_row: bool = True,
    trusted: bool = True,
    within: range | None = None,
    counts: bool = False,
) -> Iterator[NumberedRows]:
    """The base file's rows that may match; with `row_ids`, just these rows.

    Args:
        trusted: Whether the copy of the footer in an open entry may be used.
        within, counts: See `FileScan`.
    """
    footer = None
    if trusted and reader.table.storage.is_local:
        footers = map(reader.pool.open_footer, plan.entries or plan.rejected_entries)
        footer = next((each for each in footers if each is not None), None)
        if footer is None and plan.entries and reader.query.normal_form is None:
            # Arrow's reader would parse Hudi's Bloom filter, too, which takes longer than
            # reading a column of a small file. The build of the entry has checked the file.
            footer = own_footer(reader.table.storage, base_file_of(plan))
    statistics.access = Access.SCAN
    scan = FileScan(
        reader.table.storage,
        base_file_of(plan),
        reader.query.needed,
        reader.settings,
        statistics,
        reader.limit,
        footer,
        reader.footer_check,
        within,
        reader.query.output.names,
        counts,
    )
    if row_ids is None:
        yield from scan.candidates(reader.query.normal_form)
    else:
        rows = scan.rows(row_ids) if readable_by_row else scan.rows_by_arrow(row_ids)
        yield from numbered(row_ids, rows)


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


def base_file_of(plan: SlicePlan) -> BaseFile:
    """The base file of a slice that has one."""
    base_file = plan.file_slice.base_file
    assert base_file is not None, "only slices with log files lack a base file, and are merged"
    return base_file
