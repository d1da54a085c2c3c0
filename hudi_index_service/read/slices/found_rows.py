"""The rows that look-ups have found in slices, and reading those of many slices by one call.

Most slices of a query have few rows, on a few pages each. Calls for each file, and for the
conditions on its rows, would then take longer than decoding the pages.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns

import numpy as np
import pyarrow as pa
from hudi_index_parquet import Footer, ParquetReadError, read_files
from pyroaring import BitMap

from hudi_index_service.arrow import FALSE, as_truths, truths_array
from hudi_index_service.errors import EntryUnusable, NeedsSpark
from hudi_index_service.hudi.files.base_file import align
from hudi_index_service.hudi.files.parquet_file import BATCH_BYTES
from hudi_index_service.optimizer.cost.reading_steps import ReadingSteps
from hudi_index_service.optimizer.plan import SlicePlan
from hudi_index_service.predicate import evaluate, keep
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.read.base_file.kept_pages import kept_pages
from hudi_index_service.read.base_file.native_condition import native_condition
from hudi_index_service.read.base_file.row_reader import (
    FIRST_PAGE,
    RowIds,
    RowReader,
    row_positions,
)
from hudi_index_service.read.query import Query
from hudi_index_service.read.row_ids import Bounds
from hudi_index_service.read.statistics import SliceStatistics

log = logging.getLogger(__name__)

_LOG_ROWS_CHECKED = 131_072  # by one call


@dataclass(slots=True)
class FoundRows:
    """The outcome of looking up one slice: what its entries know, and then what is read.

    Attributes:
        query: The query, with the partition values of the slice.
        bounds: The rows of its base file that match, as far as its entries tell.
        failure: Why the entries cannot be used; None if they can.
        footer: Of the base file, from an entry that answered; None if none was opened.
        reading: What reading the base file costs; None if nobody asked yet.
        rows: The rows to be read; None for all rows that a scan leaves.
        by_page: Reads the pages of these rows; None for a scan.
        stored: Reads them from the values that an entry stores, if it has all columns.
        whole: Reads the whole base file instead of a scan; of a small local file, where the row
            reader tests the whole predicate.
        readable_by_row: Whether the row reader can read the file.
        replaced: Rows of the base file that count no longer, since log files have their record
            keys; none of `rows`.
        log_rows: Log rows to return as well, after the residual check.
        trusted: Whether a scan may use the copy of the footer in an open entry.
        within: The rows of the base file that a scan reads at most; None for all.
        count: The number of matching rows, if the index alone determines it. `rows` may then be
            None, since they need not be listed.
    """

    plan: SlicePlan
    statistics: SliceStatistics
    query: Query
    rows: BitMap | None = None
    bounds: Bounds = field(default_factory=Bounds.unanswered)
    failure: EntryUnusable | None = None
    footer: Footer | None = None
    reading: ReadingSteps | None = None
    by_page: RowReader | None = None
    stored: RowReader | None = None
    whole: RowReader | None = None
    readable_by_row: bool = True
    trusted: bool = True
    replaced: BitMap | None = None
    log_rows: Sequence[pa.RecordBatch] = ()
    within: range | None = None
    count: int | None = None

    @property
    def predicate(self) -> Predicate:
        """That of the query, in negation normal form; there is one wherever entries are asked."""
        assert self.query.normal_form is not None, "a query without predicate reads no entry"
        return self.query.normal_form

    @property
    def reader(self) -> RowReader | None:
        """Reads the rows one by one, or those that match of all; None for a scan."""
        return self.stored or self.by_page or self.whole

    @property
    def read_rows(self) -> RowIds | range:
        """The rows that `reader` reads."""
        if self.rows is not None:
            return row_positions(self.rows)
        assert self.whole is not None, "a scan reads row groups"
        return range(self.whole.footer.rows)

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing to read."""
        return self.rows is not None and not self.rows and not self.log_rows

    def results(self, batch: pa.RecordBatch, *, are_results: bool = False) -> pa.RecordBatch:
        """The rows where the predicate is TRUE, of some that were read, with the output columns: by
        the residual, unless it is known to be TRUE of all."""
        self.statistics.rows_checked += batch.num_rows
        if self.query.predicate is not None and not are_results:
            batch = keep(self.query.predicate, batch)
        self.statistics.rows_returned += batch.num_rows
        return _result([self], [batch.num_rows], batch)


def in_calls(found: Iterable[FoundRows]) -> list[list[FoundRows]]:
    """The slices with anything to read, in order, grouped by those whose rows `read_together`
    reads; each of the others is by itself."""
    groups: list[list[FoundRows]] = []
    last: RowReader | None = None
    rows_left, taken = 0, 0.0
    for each in found:
        if each.is_nothing:
            continue
        reader = each.reader
        if (
            reader is None
            or (each.rows is None and each.whole is None)
            or each.log_rows
            or not reader.storage.is_local
        ):
            groups.append([each])
            last = None
            continue
        rows = len(each.rows) if each.rows is not None else 0  # of a whole file, few match
        size = reader.size_of(rows or reader.footer.rows)
        if (
            last is None
            or rows > rows_left
            or last.share * (taken + size) > BATCH_BYTES
            or (each.rows is None) is not (groups[-1][0].rows is None)
            or not _are_alike(groups[-1][0].query, each.query)
            or not last.footer.schema.equals(reader.footer.schema)
        ):
            groups.append([])
            last, rows_left, taken = reader, FIRST_PAGE, 0.0
        groups[-1].append(each)
        rows_left, taken = rows_left - rows, taken + size
    return groups


def _are_alike(some: Query, others: Query) -> bool:
    """Whether rows are checked alike for both."""
    return some.predicate == others.predicate and some.values.keys() == others.values.keys()


def read_together(group: Sequence[FoundRows]) -> pa.RecordBatch | None:
    """The matching rows of several slices, in order, with the query's output columns; None if they
    must be read one by one, which reports why."""
    started = perf_counter_ns()
    readers = [each.reader for each in group if each.reader is not None]
    row_ids = [each.read_rows for each in group]
    first, query = readers[0], group[0].query
    files = [reader.file_rows(rows) for reader, rows in zip(readers, row_ids, strict=True)]
    native = None
    if query.predicate is not None and query.normal_form is not None:
        native = native_condition(query.normal_form, first.footer.schema)
    is_whole = query.predicate is None or (native is not None and native.is_whole)
    if is_whole:
        first = first.with_columns(query.output.names)
    try:
        read = read_files(
            files,
            first.present,
            condition=native.condition if native is not None and is_whole else None,
            pages=kept_pages(),
            is_scan=group[0].rows is None,
        )
    except (OSError, ParquetReadError) as error:  # reading it alone reports it, or scans the file
        log.info("One of %d files cannot be read by row: %s", len(group), error)
        return None
    if read is None:
        return None
    try:
        batch = align(read.rows, first.columns, source=first.base_file.path)
    except NeedsSpark:  # reading them one by one names the file
        return None
    if is_whole:
        result = _result(group, read.counts, batch)
    else:
        result = _matching(group, read.counts, batch)
    ms, pages = (perf_counter_ns() - started) / 1e6, sum(each.pages for each in read.stats) or 1
    for each, (count, tested, stats) in zip(
        group, zip(read.counts, read.tested, read.stats, strict=True), strict=True
    ):
        if each.rows is None:
            each.statistics.bytes_read += stats.bytes
        else:
            each.statistics.add_read(stats)
        each.statistics.stored = each.stored is not None
        each.statistics.ms += ms * stats.pages / pages
        if is_whole:
            each.statistics.rows_checked += tested
            each.statistics.rows_returned += count
    return result


def matching_log_rows(found: Iterable[FoundRows]) -> Iterator[pa.RecordBatch]:
    """The matching log rows of several slices, in order, with the query's output columns; those of
    many are checked by one call."""
    return map(_matching_log_rows, _with_log_rows(found))


def _with_log_rows(found: Iterable[FoundRows]) -> list[list[FoundRows]]:
    """The slices with log rows, in order, grouped by those whose log rows `_matching_log_rows`
    checks by one call."""
    groups: list[list[FoundRows]] = []
    rows_left = 0
    for each in found:
        if not each.log_rows:
            continue
        rows = sum(batch.num_rows for batch in each.log_rows)
        if rows > rows_left or not _are_alike(groups[-1][0].query, each.query):
            groups.append([])
            rows_left = _LOG_ROWS_CHECKED
        groups[-1].append(each)
        rows_left -= rows
    return groups


def _matching_log_rows(group: Sequence[FoundRows]) -> pa.RecordBatch:
    """The matching log rows of several slices, in order, with the query's output columns."""
    started = perf_counter_ns()
    counts = [sum(batch.num_rows for batch in each.log_rows) for each in group]
    columns = group[0].query.needed_roots
    batches = [batch.select(columns) for each in group for batch in each.log_rows]
    result = _matching(
        group, counts, batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    )
    ms = (perf_counter_ns() - started) / 1e6
    for each, count in zip(group, counts, strict=True):
        each.statistics.ms += ms * count / sum(counts)
    return result


def _matching(
    group: Sequence[FoundRows], counts: Sequence[int], batch: pa.RecordBatch
) -> pa.RecordBatch:
    """The matching rows among those of several slices, `counts` of each, with the query's output
    columns."""
    predicate, kept = group[0].query.predicate, list(counts)
    if predicate is not None:
        matches = as_truths(evaluate(predicate, batch).fill_null(FALSE))
        starts = np.cumsum([0, *counts[:-1]])
        kept = np.add.reduceat(matches, starts, dtype=np.int64).tolist()
        if not matches.all():
            batch = batch.filter(truths_array(matches))
    for each, count, matching in zip(group, counts, kept, strict=True):
        each.statistics.rows_checked += count
        each.statistics.rows_returned += matching
    return _result(group, kept, batch)


def _result(
    group: Sequence[FoundRows], kept: Sequence[int], batch: pa.RecordBatch
) -> pa.RecordBatch:
    """The output columns of the rows that were kept, `kept` of each slice; the slices may be in
    several partitions."""
    query = group[0].query
    if batch.schema.names != query.output.names:
        batch = batch.select(query.output.names)
    for name in query.values.keys() & set(query.output.names):
        values = [
            pa.repeat(each.query.values[name], count)
            for each, count in zip(group, kept, strict=True)
        ]
        position = query.output.get_field_index(name)
        batch = batch.set_column(position, name, pa.concat_arrays(values))
    return batch
