"""Reads some rows of a Parquet file as record batches, bounded in rows and in bytes.

Arrow decodes a row group from its beginning, so rows before the requested ones are decoded and
discarded; rows after them are not. Arrow takes a number of rows, not of bytes. The bytes per row
are measured on the batches read, since repeated values are much smaller in the file.
"""

from collections.abc import Collection, Generator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pyarrow.parquet as pq

BATCH_BYTES = 16 * 2**20
"""Approximate maximum bytes of a batch; after a larger batch the next ones are smaller."""

FIRST_ROWS = 4096
"""Rows of the first batch, by which the bytes per row are measured."""

_FEWEST_ROWS = 16


def row_batches(
    file: "pq.ParquetFile",
    columns: Sequence[str],
    *,
    rows: range,
    batch_rows: int,
    row_groups: Collection[int] | None = None,
) -> Generator[pa.RecordBatch, None, None]:
    """The rows of the file at the consecutive positions `rows`, in order.

    Args:
        row_groups: Row groups to read; None for all.
        columns: Paths of the columns to read; at least one.
        batch_rows: Maximum rows of a batch.
    """
    start, at_once = 0, 0
    for number in range(file.metadata.num_row_groups):
        count = file.metadata.row_group(number).num_rows
        group_rows = range(max(rows.start, start) - start, min(rows.stop, start + count) - start)
        if len(group_rows) > 0 and (row_groups is None or number in row_groups):
            at_once = yield from _of_row_group(
                file, number, columns, group_rows, batch_rows, at_once
            )
        start += count


def _of_row_group(
    file: "pq.ParquetFile",
    number: int,
    columns: Sequence[str],
    rows: range,
    batch_rows: int,
    at_once: int,
) -> Generator[pa.RecordBatch, None, int]:
    """The rows of one row group. `at_once` is the batch size, 0 if rows have not been measured yet;
    returns the batch size for the next row group."""
    position, is_measured = rows.start, at_once > 0
    at_once = at_once or min(batch_rows, FIRST_ROWS)
    while position < rows.stop:
        # One row group at a time: Arrow fetches all requested row groups in advance.
        batches = file.iter_batches(at_once, row_groups=[number], columns=list(columns))
        end = 0
        for batch in batches:
            before, end = end, end + batch.num_rows
            if end > position:
                part = batch.slice(position - before, rows.stop - position)
                position += part.num_rows
                yield part
            rows_per_batch = fitting_rows(batch, batch_rows)
            if position >= rows.stop:
                return rows_per_batch
            # A restart decodes the row group again, so the batch size is raised only at first.
            if rows_per_batch < at_once // 2 or not is_measured:
                at_once, is_measured = rows_per_batch, True
                break
        else:
            raise pa.ArrowInvalid(f"row group {number} ends before row {rows.stop}")
    return at_once


def fitting_rows(batch: pa.RecordBatch, batch_rows: int) -> int:
    """How many rows like these fit in a batch, at most `batch_rows`."""
    fit = BATCH_BYTES * int(batch.num_rows) // max(int(batch.nbytes), 1)
    return min(batch_rows, max(fit, _FEWEST_ROWS))
