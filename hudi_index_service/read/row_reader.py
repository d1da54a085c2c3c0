"""Rows of a base file by row id, page by page, as the footer kept with its entry says."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from hudi_index_parquet import Footer, ParquetReadError, ReadStats, RowPlan
from pyroaring import BitMap

from hudi_index_service.errors import StorageFailed, TableFeatureUnsupported
from hudi_index_service.storage import Storage
from hudi_index_service.table.base_file import align, present_columns
from hudi_index_service.table.parquet_file import is_broken_text, refusals_named, row_source
from hudi_index_service.table.protocol import BaseFile
from hudi_index_service.table.row_batches import BATCH_BYTES, fitting_rows

RowIds = np.ndarray[tuple[int], np.dtype[np.int64]]

_MOST_ROWS = 131_072  # of a batch
_NEAR = 8  # rows: to pass over fewer takes as long as to decode them
_FIRST_PAGE = 20_480  # rows to begin with: as many as Hudi's pages hold, and a bit
_MANY = 4096  # rows, from which on it is worth while to look which are near


def row_positions(rows: BitMap) -> RowIds:
    """Row ids as the row reader takes them."""
    return np.frombuffer(rows.to_array(), dtype=np.uint32).astype(np.int64)


def positions(rows: RowIds | range) -> RowIds:
    """The same, spelled out."""
    return np.arange(rows.start, rows.stop) if isinstance(rows, range) else rows


@dataclass(frozen=True, slots=True)
class RowsRead:
    """Some of the rows asked for, in their order.

    Attributes:
        count: How many.
        batches: The rows.
        did: What was read for them.
    """

    count: int
    batches: list[pa.RecordBatch]
    did: ReadStats


@dataclass(frozen=True, slots=True)
class RowReader:
    """Reads rows of one base file.

    Attributes:
        columns: The columns to read, in the table's types.

    Every method raises `ParquetReadError` for what the row reader cannot read, though a scan might,
    and TableFeatureUnsupported where the file has not the table's columns.
    """

    storage: Storage
    base_file: BaseFile
    footer: Footer
    columns: pa.Schema

    def plan(self, rows: RowIds) -> RowPlan:
        """What reading these rows would take; nothing is read for that."""
        return self.footer.plan(rows.data, self._present())

    def batches(self, rows: RowIds | range, *, limit: int | None = None) -> Iterator[RowsRead]:
        """The rows in portions of about `BATCH_BYTES`, of which one is read when it is asked for.

        Args:
            rows: Row ids, ascending and unique.
            limit: Read so many first, then, when asked for more, twice as many each time.

        Raises:
            FileNotFoundError: the base file is gone.
            PermissionDenied: it must not be read.
            StorageFailed: it cannot be reached.
        """
        present = self._present()
        source = row_source(self.storage, self.base_file.path)
        start, most = 0, self._first_rows(rows, present)
        starts: RowIds | None = None
        if limit is not None:
            most = min(most, max(limit, 1))
        while start < len(rows):
            stop = start + most
            if most > _MANY and stop < len(rows):
                if starts is None:
                    starts = np.array(self.footer.page_starts(present), dtype=np.int64)
                stop = _page_border(rows, start, stop, starts)
            some = positions(rows[start:stop])
            read, places = _with_near(some)
            with refusals_named(self.base_file.path):
                table, did = self.footer.read(source, read.data, present, size=self.base_file.size)
            batches = _batches(table, len(read))
            weighed = max(batches, key=lambda batch: batch.nbytes)
            if places is not None:
                batches = _batches(table.take(pa.array(places)), len(some))
            yield RowsRead(len(some), [self._aligned(batch) for batch in batches], did)
            start += len(some)
            fitting = max(1, fitting_rows(weighed, _MOST_ROWS) * len(some) // len(read))
            most = fitting if limit is None else min(fitting, 2 * most)

    def _first_rows(self, rows: RowIds | range, present: list[str]) -> int:
        """How many rows to begin with, by what they weigh in the file; not many, since there a
        value that repeats weighs next to nothing."""
        plan = self.footer.plan(positions(rows[:_MANY]).data, present)
        fitting = BATCH_BYTES * plan.group_rows // max(plan.plain_bytes, 1)
        return max(1, min(_FIRST_PAGE, fitting))

    def _present(self) -> list[str]:
        return present_columns(self.footer.schema, self.columns, source=self.base_file.path)

    def _aligned(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return align(batch, self.columns, source=self.base_file.path)


def column_share(footer: Footer, columns: pa.Schema, base_file: BaseFile) -> float | None:
    """What some columns take of a base file's bytes; None if its footer does not say."""
    try:
        present = present_columns(footer.schema, columns, source=base_file.path)
        taken = footer.plan(np.empty(0, dtype=np.int64).data, present).total_bytes
    except (ParquetReadError, TableFeatureUnsupported):
        return None  # who reads the file says why
    return taken / base_file.size


def unreadable_by_row(base_file: BaseFile, error: ParquetReadError) -> str:
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


def _batches(table: pa.Table, rows: int) -> list[pa.RecordBatch]:
    """The table's batches; one of the right length where no column was read."""
    if table.num_columns == 0:
        return [pa.record_batch([pa.nulls(rows)], names=["_"]).select([])]
    return list(table.to_batches())


def _page_border(rows: RowIds | range, start: int, stop: int, starts: RowIds) -> int:
    """Where to end a portion that would end at `stop`: where a page begins, so that none is read
    for two portions; unless not much would be left of it."""
    page = starts[np.searchsorted(starts, rows[stop], "right") - 1]
    border = page - rows.start if isinstance(rows, range) else np.searchsorted(rows, page)
    return int(border) if (start + stop) // 2 < border < stop else stop


def _with_near(rows: RowIds) -> tuple[RowIds, RowIds | None]:
    """Many rows together with those in narrow gaps between them, and where the rows stand among all
    these; None where they are all."""
    if len(rows) < _MANY:
        return rows, None
    steps = np.diff(rows)
    narrow = (steps > 1) & (steps <= _NEAR)
    if 4 * np.count_nonzero(narrow) < len(rows):
        return rows, None
    repeats = np.append(np.where(narrow, steps, 1), 1)
    ends = np.cumsum(repeats)
    places = ends - repeats
    read = np.repeat(rows - places, repeats) + np.arange(ends[-1])
    return read, places
