"""Reads rows of a base file by row id, page by page, with the footer stored in its entry."""

from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from hudi_index_parquet import FileRows, Footer, ParquetReadError, ReadStats, RowPlan
from pyroaring import BitMap

from hudi_index_service.arrow import as_numbers, numbers_array, rows_without_columns
from hudi_index_service.cancellation import check
from hudi_index_service.errors import StorageFailed, TableFeatureUnsupported
from hudi_index_service.hudi.files.base_file import align, present_columns
from hudi_index_service.hudi.files.parquet_file import (
    BATCH_BYTES,
    fitting_rows,
    is_broken_text,
    refusals_named,
    row_source,
)
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.predicate.expression import Constant, Predicate
from hudi_index_service.read.base_file.kept_pages import kept_pages
from hudi_index_service.read.base_file.native_condition import NativeCondition, native_condition
from hudi_index_service.storage.store import Storage

if TYPE_CHECKING:
    from hudi_index_parquet import Fetch

RowIds = np.ndarray[tuple[int], np.dtype[np.int64]]


class NumberedRows(NamedTuple):
    """Rows of a base file with their row ids.

    Attributes:
        rows: Empty if the row ids are not needed.
        are_results: Whether the predicate is TRUE of all these rows, which may then lack columns
            that only the predicate needs.
    """

    rows: RowIds | range
    batch: pa.RecordBatch
    are_results: bool = False


FIRST_PAGE = 20_480
"""Rows that are read before their size is known: slightly more than a page of Hudi."""

_MOST_ROWS = 131_072  # of a batch
_MOST_TESTED = 8 * _MOST_ROWS  # at once, of which few match
_GROWTH = 8  # of portions of which few match
_MOST_MATCHING = 1 / 4  # of a portion, from which on testing rows first does not pay
_NEAR = 8  # rows; skipping fewer takes as long as decoding them
_MANY = 4096  # rows from which looking for narrow gaps is worth its cost


_last_present: ContextVar[tuple[pa.Schema, pa.Schema, list[str]] | None] = ContextVar(
    "last_present", default=None
)
"""The schema of a file, the columns read, and those of them that the file has: most files of a
table have the same."""


def row_positions(rows: BitMap) -> RowIds:
    """Row ids in the row reader's format."""
    return np.frombuffer(rows.to_array(), dtype=np.uint32).astype(np.int64)


def positions(rows: RowIds | range) -> RowIds:
    """The same as an array."""
    return np.arange(rows.start, rows.stop) if isinstance(rows, range) else rows


def numbered_rows(
    rows: RowIds | range, batches: Iterable[pa.RecordBatch], *, are_results: bool = False
) -> Iterator[NumberedRows]:
    """The batches of these rows, in order, each with its row ids."""
    start = 0
    for batch in batches:
        yield NumberedRows(rows[start : start + batch.num_rows], batch, are_results)
        start += batch.num_rows


@dataclass(frozen=True, slots=True)
class RowsRead:
    """Some of the requested rows, in order.

    Attributes:
        count: The number of rows.
        rows: Those of them of which the predicate may be TRUE; all without one. Empty if they are
            not needed.
        batches: These rows.
        did: Statistics of the read.
        are_results: See `NumberedRows`.
    """

    count: int
    rows: RowIds | range
    batches: list[pa.RecordBatch]
    did: ReadStats
    are_results: bool = False

    @property
    def found(self) -> int:
        """The number of rows of which the predicate may be TRUE."""
        return sum(batch.num_rows for batch in self.batches)

    def numbered(self) -> Iterator[NumberedRows]:
        """The rows with their row ids."""
        return numbered_rows(self.rows, self.batches, are_results=self.are_results)


@dataclass(frozen=True)
class RowReader:
    """Reads rows of one base file.

    Attributes:
        columns: The columns to read, in the table's types.
        is_scan: Whether more pages are read than are soon wanted again.

    Every method raises `ParquetReadError` if the row reader cannot read the file, though a scan
    might, and TableFeatureUnsupported if the file lacks the table's columns.
    """

    storage: Storage
    base_file: BaseFile
    footer: Footer
    columns: pa.Schema
    is_scan: bool = False

    def size_of(self, rows: int) -> float:
        """The bytes of so many rows of average size, with all columns of the file."""
        return rows * self.footer.plain_bytes / max(self.footer.rows, 1)

    @cached_property
    def share(self) -> float:
        """The share of these bytes that the columns to be read take."""
        try:
            plan = self.footer.plan(range(self.footer.rows), self.present)
        except ParquetReadError:  # reading it reports it
            return 1.0
        return min(1.0, plan.plain_bytes / max(self.footer.plain_bytes, 1))

    def with_columns(self, names: Sequence[str]) -> "RowReader":
        """The reader of some of the columns, if the file can be read with all of them."""
        columns = pa.schema([self.columns.field(name) for name in names])
        if columns.equals(self.columns):
            return self
        present_columns(self.footer.schema, self.columns, source=self.base_file.path)
        return replace(self, columns=columns)

    def plan(self, rows: RowIds) -> RowPlan:
        """The cost of reading these rows; reads nothing."""
        return self.footer.plan(rows, self.present)

    def file_rows(self, rows: RowIds | range) -> FileRows:
        """These rows of a local base file, for `read_files`."""
        path = self.storage.local_name(self.base_file.path)
        return FileRows(self.footer, path, rows, self.base_file.size)

    def batches(
        self,
        rows: RowIds | range,
        *,
        limit: int | None = None,
        predicate: Predicate | None = None,
        output: Sequence[str] | None = None,
        numbered: bool = True,
    ) -> Iterator[RowsRead]:
        """The rows in portions of about `BATCH_BYTES`, each read on demand.

        Args:
            rows: Row ids, ascending and unique.
            limit: The maximum number of rows in the first portion; it doubles with each portion.
            predicate: In negation normal form. Rows for which it is not TRUE are left out, as far
                as the row reader can tell, and while that pays; of a local file.
            output: Those of the columns that are needed of rows of which it is TRUE; None for all.
            numbered: Whether the row ids are needed. If not, rows without `output` are only
                counted.

        Raises:
            FileNotFoundError: the base file is gone.
            PermissionDenied: the base file must not be read.
            StorageFailed: the base file cannot be reached.
        """
        source = row_source(self.storage, self.base_file.path)
        condition, matching = None, self
        if predicate is not None and predicate != Constant(True) and self.storage.is_local:
            condition = native_condition(predicate, self.footer.schema)
            if condition is not None and not (condition.is_whole or self.is_scan):
                condition = None  # most of what an index has found matches
        if output is not None and condition is not None and condition.is_whole:
            matching = self.with_columns(output)
        start, most = 0, matching._first_rows(rows)
        starts: RowIds | None = None
        if limit is not None:
            most = min(most, max(limit, 1))
        while start < len(rows):
            check()
            stop = start + most
            if most > _MANY and stop < len(rows):
                if starts is None:
                    starts = np.array(self.footer.page_starts(self.present), dtype=np.int64)
                stop = _page_border(rows, start, stop, starts)
            portion = rows[start:stop]
            if condition is None:
                read = None
            elif not numbered and condition.is_whole and not matching.columns.names:
                read = self._counted(portion, condition)
            else:
                read = matching._matching(portion, condition, numbered=numbered)
            if read is None:
                condition = None
                read = self._all(source, portion)
            yield read
            if not read.are_results and read.found > _MOST_MATCHING * read.count:
                condition = None
            start += len(portion)
            if start == len(rows):
                return
            most = self._next_rows(read, is_tested=condition is not None)
            if limit is not None:
                most = min(most, 2 * len(portion))

    def _all(self, source: "str | Fetch", portion: RowIds | range) -> RowsRead:
        """All rows of a portion."""
        rows_to_read, places = _with_near(portion)
        with refusals_named(self.base_file.path):
            table, stats = self.footer.read(
                source,
                rows_to_read,
                self.present,
                size=self.base_file.size,
                pages=kept_pages(),
                is_scan=self.is_scan,
            )
        if places is not None:
            table = table.take(numbers_array(places))
        batches = self._batches(table.to_batches(), len(portion))
        return RowsRead(len(portion), portion, batches, stats)

    def _matching(
        self, portion: RowIds | range, native: NativeCondition, *, numbered: bool
    ) -> RowsRead | None:
        """The rows of a portion that match; None if the row reader cannot tell which."""
        with refusals_named(self.base_file.path):
            found = self.footer.matching(
                self.storage.local_path(self.base_file.path),
                portion,
                native.condition,
                self.present,
                numbered=numbered,
                size=self.base_file.size,
                pages=kept_pages(),
                is_scan=self.is_scan,
            )
        if found is None:
            return None
        batches = self._batches(found.rows, found.count)
        rows = range(0) if found.positions is None else as_numbers(found.positions)
        return RowsRead(len(portion), rows, batches, found.stats, native.is_whole)

    def _counted(self, portion: RowIds | range, native: NativeCondition) -> RowsRead | None:
        """The number of rows of a portion that match; None if the row reader cannot tell."""
        with refusals_named(self.base_file.path):
            counted = self.footer.count(
                self.storage.local_path(self.base_file.path),
                portion,
                native.condition,
                size=self.base_file.size,
                pages=kept_pages(),
                is_scan=self.is_scan,
            )
        if counted is None:
            return None
        number, stats = counted
        batches = [rows_without_columns(number)] if number else []
        return RowsRead(len(portion), range(0), batches, stats, are_results=True)

    def _next_rows(self, read: RowsRead, *, is_tested: bool) -> int:
        """The number of rows of the next portion, by the size of those of the last one."""
        most = min(_MOST_TESTED, _GROWTH * read.count) if is_tested else _MOST_ROWS
        if not read.batches:
            return most
        largest = max(read.batches, key=lambda batch: batch.nbytes)
        if not largest.nbytes:
            return most
        fitting = fitting_rows(largest, _MOST_ROWS) * read.count // max(read.found, 1)
        return max(1, min(most, fitting))

    def _first_rows(self, rows: RowIds | range) -> int:
        """The number of rows of the first portion, by their size in the file; not many, since
        repeated values take almost no space there."""
        if len(rows) <= FIRST_PAGE and self.size_of(len(rows)) <= BATCH_BYTES:
            return max(1, len(rows))
        plan = self.footer.plan(rows[:_MANY], self.present)
        fitting = BATCH_BYTES * plan.group_rows // max(plan.plain_bytes, 1)
        return max(1, min(FIRST_PAGE, fitting))

    @cached_property
    def present(self) -> list[str]:
        """The paths of the columns that the file has."""
        stored, last = self.footer.schema, _last_present.get()
        if last is None or not last[1].equals(self.columns) or not last[0].equals(stored):
            present = present_columns(stored, self.columns, source=self.base_file.path)
            last = stored, self.columns, present
            _last_present.set(last)
        return last[2]

    def _batches(self, read: Sequence[pa.RecordBatch], rows: int) -> list[pa.RecordBatch]:
        """Batches in the types of the columns, without empty ones; one of so many rows if no column
        was read."""
        batches = read if self.present else [rows_without_columns(rows)]
        source = self.base_file.path
        return [align(each, self.columns, source=source) for each in batches if each.num_rows]


def column_share(footer: Footer, columns: pa.Schema, base_file: BaseFile) -> float | None:
    """The share of a base file's bytes that some columns take; None if unknown from its footer."""
    try:
        present = present_columns(footer.schema, columns, source=base_file.path)
        column_bytes = footer.plan(np.empty(0, dtype=np.int64).data, present).total_bytes
    except (ParquetReadError, TableFeatureUnsupported):
        return None  # the reader of the file reports the reason
    return column_bytes / base_file.size


def unreadable_by_row(base_file: BaseFile, error: ParquetReadError) -> str:
    """Why a base file that the row reader cannot read is scanned; the scan may succeed, or report
    the damage.

    Raises:
        StorageFailed: a page is not the one that was written.
    """
    if "CRC" in str(error):
        raise StorageFailed(
            f"{base_file.path} cannot be read: {error}.",
            remedy="The table itself is damaged; try to read this file with Spark.",
        ) from error
    if is_broken_text(error):
        return "it holds text that is not UTF-8: only a scan reads it"
    return f"its rows cannot be read one by one: {error}"


def _page_border(rows: RowIds | range, start: int, stop: int, starts: RowIds) -> int:
    """The end of a portion that would end at `stop`: the start of a page, so that no page is read
    for two portions, unless the portion would become too small."""
    page = starts[np.searchsorted(starts, rows[stop], "right") - 1]
    border = page - rows.start if isinstance(rows, range) else np.searchsorted(rows, page)
    return int(border) if (start + stop) // 2 < border < stop else stop


def _with_near(rows: RowIds | range) -> tuple[RowIds | range, RowIds | None]:
    """The rows together with those in narrow gaps between them, and the places of the rows among
    them; None if no gap is filled."""
    if isinstance(rows, range) or len(rows) < _MANY:
        return rows, None
    steps = np.diff(rows)
    narrow = (steps > 1) & (steps <= _NEAR)
    if 4 * np.count_nonzero(narrow) < len(rows):
        return rows, None
    repeats = np.append(np.where(narrow, steps, 1), 1)
    ends = np.cumsum(repeats)
    places = ends - repeats
    rows_to_read = np.repeat(rows - places, repeats) + np.arange(ends[-1])
    return rows_to_read, places
