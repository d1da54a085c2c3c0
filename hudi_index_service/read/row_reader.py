"""Rows of a base file by row id, page by page, as the footer kept with its entry says."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from hudi_index_parquet import Footer, ReadStats, RowPlan
from pyroaring import BitMap

from hudi_index_service.storage import Storage
from hudi_index_service.table.base_file import align, present_columns
from hudi_index_service.table.parquet_file import refusals_named, row_source
from hudi_index_service.table.protocol import BaseFile
from hudi_index_service.table.row_batches import BATCH_BYTES, FIRST_ROWS, fitting_rows

RowIds = np.ndarray[tuple[int], np.dtype[np.int64]]

_MOST_ROWS = 65_536  # of a batch


def row_positions(rows: BitMap) -> RowIds:
    """Row ids as the row reader takes them."""
    return np.frombuffer(rows.to_array(), dtype=np.uint32).astype(np.int64)


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

    def batches(self, rows: RowIds, *, limit: int | None = None) -> Iterator[RowsRead]:
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
        start, at_once = 0, self._first_rows(rows, present)
        most = at_once if limit is None else min(at_once, max(limit, 1))
        while start < len(rows):
            some = rows[start : start + most]
            with refusals_named(self.base_file.path):
                table, did = self.footer.read(source, some.data, present, size=self.base_file.size)
            batches = _batches(table, len(some))
            weighed = max(batches, key=lambda batch: batch.nbytes)
            yield RowsRead(len(some), [self._aligned(batch) for batch in batches], did)
            start += len(some)
            fitting = fitting_rows(weighed, _MOST_ROWS)
            most = fitting if limit is None else min(fitting, 2 * most)

    def _first_rows(self, rows: RowIds, present: list[str]) -> int:
        """How many rows to begin with, by what they weigh in the file; not many, since there a
        value that repeats weighs next to nothing."""
        plan = self.footer.plan(rows[:FIRST_ROWS].data, present)
        fitting = BATCH_BYTES * plan.group_rows // max(plan.plain_bytes, 1)
        return max(1, min(FIRST_ROWS, fitting))

    def _present(self) -> list[str]:
        return present_columns(self.footer.schema, self.columns, source=self.base_file.path)

    def _aligned(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return align(batch, self.columns, source=self.base_file.path)


def _batches(table: pa.Table, rows: int) -> list[pa.RecordBatch]:
    """The table's batches; one of the right length where no column was read."""
    if table.num_columns == 0:
        return [pa.record_batch([pa.nulls(rows)], names=["_"]).select([])]
    return list(table.to_batches())
