"""Some rows of a Parquet file as record batches, bounded in rows and in bytes.

Arrow decodes a row group from its beginning, so rows before the wanted ones are decoded and thrown
away; those behind them are not touched. It is told a number of rows, not of bytes: what rows weigh
is estimated from the footer and corrected by the batches that came, since values that repeat are
much smaller in the file.
"""

from collections.abc import Collection, Generator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

BATCH_BYTES = 16 * 2**20
"""About what a batch may hold; a batch that turned out larger makes the next ones smaller."""

FIRST_ROWS = 4096
"""Rows to begin with, to see what they weigh."""

_FEWEST_ROWS = 16


def row_batches(
    file: pq.ParquetFile,
    columns: Sequence[str],
    *,
    rows: range,
    batch_rows: int,
    row_groups: Collection[int] | None = None,
) -> Generator[pa.RecordBatch, None, None]:
    """The rows of the file at the positions `rows` (consecutive ones), in order.

    Args:
        row_groups: Rows of others are left out; None for all.
        columns: Paths of the columns to read; at least one.
        batch_rows: No batch has more rows than this.
    """
    start, at_once = 0, 0
    for number in range(file.metadata.num_row_groups):
        count = file.metadata.row_group(number).num_rows
        wanted = range(max(rows.start, start) - start, min(rows.stop, start + count) - start)
        if len(wanted) > 0 and (row_groups is None or number in row_groups):
            at_once = yield from _of_row_group(file, number, columns, wanted, batch_rows, at_once)
        start += count


def _of_row_group(
    file: pq.ParquetFile,
    number: int,
    columns: Sequence[str],
    rows: range,
    batch_rows: int,
    at_once: int,
) -> Generator[pa.RecordBatch, None, int]:
    """Rows of one row group. `at_once` is how many to read at a time, 0 if rows have not been
    weighed yet; returns how many of the next row group."""
    position, weighed = rows.start, at_once > 0
    at_once = at_once or min(batch_rows, FIRST_ROWS)
    while position < rows.stop:
        # One row group at a time: Arrow fetches all that it is asked for beforehand.
        batches = file.iter_batches(at_once, row_groups=[number], columns=list(columns))
        end = 0
        for batch in batches:
            before, end = end, end + batch.num_rows
            if end > position:
                some = batch.slice(position - before, rows.stop - position)
                position += some.num_rows
                yield some
            fitting = fitting_rows(batch, batch_rows)
            if position >= rows.stop:
                return fitting
            # Beginning again costs decoding what was decoded: to read more at once only at first.
            if fitting < at_once // 2 or not weighed:
                at_once, weighed = fitting, True
                break
        else:
            raise pa.ArrowInvalid(f"row group {number} ends before row {rows.stop}")
    return at_once


def fitting_rows(batch: pa.RecordBatch, batch_rows: int) -> int:
    """How many rows like these make a batch, `batch_rows` at most."""
    fit = BATCH_BYTES * int(batch.num_rows) // max(int(batch.nbytes), 1)
    return min(batch_rows, max(fit, _FEWEST_ROWS))
