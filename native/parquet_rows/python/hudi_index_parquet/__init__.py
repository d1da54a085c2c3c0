"""Reads rows by position from Parquet files, page by page.

Only the data pages that hold the rows are fetched and decoded, which the offset index of the
file points out; a file without one is read by whole column chunks, with the same answer.

    footer = stripped_footer("part-0.parquet")
    table, stats = read_rows("part-0.parquet", numpy.array([7, 4711]), ["name"], metadata=footer)

Every function raises `ParquetReadError` for bytes that are not readable Parquet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

from hudi_index_parquet import _native
from hudi_index_parquet._native import ParquetReadError

if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    import pyarrow as pa
    from typing_extensions import Buffer

__all__ = [
    "Fetch",
    "ParquetReadError",
    "ReadStats",
    "RowPlan",
    "Rows",
    "plan_rows",
    "read_rows",
    "row_count",
    "stripped_footer",
]

Fetch: TypeAlias = "Callable[[list[tuple[int, int]]], Iterable[Buffer]]"
"""Fetches byte ranges `[(start, end), ...]`, ends excluded: one buffer for each, in their order.

It is called from the thread that called `read_rows` or `stripped_footer`. What it raises is
raised there unchanged.
"""

Rows: TypeAlias = "Buffer | np.ndarray[Any, np.dtype[np.signedinteger[Any]]]"
"""0-based row positions in a file, ascending and unique: a one-dimensional buffer of 64-bit signed
integers, such as a NumPy array (which type checkers take for a buffer from Python 3.12 on only)."""


@dataclass(frozen=True, slots=True)
class ReadStats:
    """What was fetched and decoded for one read, the footer included if it was read."""

    calls: int
    """Rounds of fetching: calls of a callback, or batches of reads of a local file."""
    ranges: int
    """Ranges fetched in those rounds, after near ones were merged."""
    bytes: int
    """Bytes in those ranges."""
    pages: int
    """Data pages decoded; a column chunk without offset index counts as one."""


@dataclass(frozen=True, slots=True)
class RowPlan:
    """What reading some rows would take, in bytes as they are in the file (compressed)."""

    pages: int
    """Data pages that hold the rows; a column chunk without offset index counts as one."""
    page_bytes: int
    """Bytes of those pages and of the dictionary pages they need."""
    chunk_bytes: int
    """Bytes of the whole chunks of the columns in the row groups that hold the rows."""
    total_bytes: int
    """Bytes of all chunks of the columns in the file."""
    row_groups: int
    """Row groups that hold the rows."""


def read_rows(
    source: str | PathLike[str] | Fetch,
    rows: Rows,
    columns: Sequence[str] | None = None,
    *,
    size: int | None = None,
    metadata: Buffer | None = None,
    merge_gap: int | None = None,
) -> tuple[pa.Table, ReadStats]:
    """Read the rows at the given positions.

    Args:
        source: a local path, or a callable that fetches byte ranges.
        rows: 0-based positions in the file, ascending and unique.
        columns: names of top-level columns in the wanted order; None for all of them. `a.b` reads,
            of the struct `a`, that field only; the answer has a struct `a` of such fields.
        size: length of the file in bytes. Needed with a callable; for a path it is checked.
        metadata: what `stripped_footer` gave for this very file. The file's own footer is then
            not read, and for no rows nothing is read at all.
        merge_gap: ranges at most this many bytes apart are fetched as one. By default 64 KiB
            for a callable, and 0 for a path.

    Returns:
        The rows in the order of the file, with the types that the file holds. INT96 timestamps
        are `timestamp[us]`, so that the years 1 to 9999 fit, and without a time zone. Where the
        writer stored an Arrow schema, it decides between types the file cannot tell apart.

    Raises:
        ParquetReadError: the file or `metadata` is malformed or encrypted.
        ValueError: bad `rows` (the position is named), an unknown or ambiguous column, or a
            callable that returns the wrong number of buffers or bytes.
        OSError: the local file cannot be read.
    """
    table, stats = _native.read_rows(
        source, rows, None if columns is None else list(columns), size, metadata, merge_gap
    )
    return table, ReadStats(*stats)


def stripped_footer(
    source: str | PathLike[str] | Fetch, *, size: int | None = None, column_index: bool = False
) -> bytes:
    """Return the part of the file's footer that finding rows needs, to be kept elsewhere.

    It holds the schema, row groups, column chunks and the offset index of every column. Left out
    are bloom filters and the key-value metadata, where Hudi keeps its own bloom filter; only the
    Arrow schema stays of the latter, since it decides the types of the columns.

    Args:
        source: a local path, or a callable that fetches byte ranges.
        size: length of the file in bytes. Needed with a callable; for a path it is checked.
        column_index: keep the column index and the statistics of the column chunks too.

    Raises:
        ParquetReadError: the file is malformed or encrypted.
        OSError: the local file cannot be read.
    """
    return _native.stripped_footer(source, size, column_index)


def plan_rows(metadata: Buffer, rows: Rows, columns: Sequence[str] | None = None) -> RowPlan:
    """Tell what `read_rows` would read, from a stripped footer alone.

    Without merging, `page_bytes` are the very bytes that `read_rows` then fetches. Compare them
    with `chunk_bytes` and `total_bytes` to choose between pages, whole chunks and a scan.

    Raises:
        ParquetReadError: `metadata` is malformed.
        ValueError: bad `rows`, or an unknown or ambiguous column.
    """
    return RowPlan(*_native.plan_rows(metadata, rows, None if columns is None else list(columns)))


def row_count(metadata: Buffer) -> int:
    """Return the number of rows in the file that a stripped footer was made of.

    Raises:
        ParquetReadError: `metadata` is malformed.
    """
    return _native.row_count(metadata)
