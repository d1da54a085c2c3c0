"""Reads rows by position from Parquet files, page by page.

Only the data pages that hold the rows are fetched and decoded, which the offset index of the
file points out; a file without one is read by whole column chunks, with the same answer.

    footer = Footer(stripped_footer("part-0.parquet"))
    table, stats = footer.read("part-0.parquet", numpy.array([7, 4711]), ["name"])

Every function raises `ParquetReadError` for bytes that are not readable Parquet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

from hudi_index_parquet import _native
from hudi_index_parquet._native import ParquetReadError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from typing_extensions import Buffer

__all__ = [
    "Bounds",
    "Fetch",
    "Footer",
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
    ranges: int
    """Ranges of bytes that they lie in, adjacent pages taken together."""
    chunk_bytes: int
    """Bytes of the whole chunks of the columns in the row groups that hold the rows."""
    total_bytes: int
    """Bytes of all chunks of the columns in the file."""
    row_groups: int
    """Row groups that hold the rows."""
    group_rows: int
    """Rows in those row groups."""
    plain_bytes: int
    """Bytes of the chunks of the columns in those row groups before compression: what is repeated
    takes more room once it is decoded."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Consecutive rows of a file, and what is known of a column's values in them."""

    start: int
    """Position of the first of them."""
    stop: int
    """Position of the first row behind them."""
    nulls: int | None
    """How many values are NULL; None if not known."""
    range: tuple[Any, Any] | None
    """Of the values that are neither NULL nor NaN none is below the first nor above the second,
    which need not be among them; None if not known. They are bool, int (days, time units and
    unscaled decimals too), float, or bytes in unsigned order."""


class Footer:
    """A stripped footer, parsed once for any number of reads, from several threads too.

    Args:
        data: What `stripped_footer` gave.

    Raises:
        ParquetReadError: `data` is malformed.
    """

    __slots__ = ("_native",)

    def __init__(self, data: Buffer) -> None:
        self._native = _native.Footer(data)

    @property
    def rows(self) -> int:
        """Rows in the file."""
        return self._native.rows

    @property
    def schema(self) -> pa.Schema:
        """All columns of the file, with the types that `read` gives them."""
        return self._native.schema

    def plan(self, rows: Rows, columns: Sequence[str] | None = None) -> RowPlan:
        """Tell what `read` would read; nothing is read for that.

        Without merging, `page_bytes` are the very bytes that `read` then fetches. Compare them
        with `chunk_bytes` and `total_bytes` to choose between pages, whole chunks and a scan.

        Raises:
            ParquetReadError: the footer contradicts itself.
            ValueError: bad `rows`, or an unknown or ambiguous column.
        """
        return RowPlan(*self._native.plan(rows, None if columns is None else list(columns)))

    def page_starts(self, columns: Sequence[str] | None = None) -> list[int]:
        """Positions of the rows with which pages of the largest of the columns begin, ascending; of
        a row group without offset index its first row.

        Many rows, read in portions, are best cut there: a page that lies in two portions is read
        and decoded twice.

        Raises:
            ValueError: an unknown or ambiguous column.
        """
        return self._native.page_starts(None if columns is None else list(columns))

    def read(
        self,
        source: str | PathLike[str] | Fetch,
        rows: Rows,
        columns: Sequence[str] | None = None,
        *,
        size: int | None = None,
        merge_gap: int | None = None,
        threads: int | None = None,
    ) -> tuple[pa.Table, ReadStats]:
        """Read the rows at the given positions of the file that the footer was made of; see
        `read_rows`. For no rows nothing is read at all."""
        wanted = None if columns is None else list(columns)
        table, stats = self._native.read(source, rows, wanted, size, merge_gap, threads)
        return table, ReadStats(*stats)

    def bounds(
        self,
        source: str | PathLike[str] | Fetch,
        path: Sequence[str],
        *,
        size: int | None = None,
    ) -> list[Bounds] | None:
        """What the file's column index says of a column's values: page by page, in the order of
        the rows, without gaps. Only the column index of that column is read.

        Args:
            source, size: see `read_rows`.
            path: The column's name, or the names of a struct and of the field in it, and so on.

        Returns:
            None where nothing is sound: there is no such column, it lies in an array or map, its
            type is INT96 or a decimal in a byte array, or the writer of the file is not known.
            Where a row group has no column index, it is one of the `Bounds`, with nothing known.

        Raises:
            ParquetReadError: the column index is malformed, or contradicts the footer.
            OSError: the local file cannot be read.
        """
        known = self._native.bounds(source, list(path), size)
        return None if known is None else [Bounds(*each) for each in known]


def read_rows(
    source: str | PathLike[str] | Fetch,
    rows: Rows,
    columns: Sequence[str] | None = None,
    *,
    size: int | None = None,
    metadata: Buffer | None = None,
    merge_gap: int | None = None,
    threads: int | None = None,
) -> tuple[pa.Table, ReadStats]:
    """Read the rows at the given positions. With the same `metadata` several times, a `Footer`
    does it faster.

    Args:
        source: a local path, or a callable that fetches byte ranges.
        rows: 0-based positions in the file, ascending and unique.
        columns: names of top-level columns in the wanted order; None for all of them. `a.b` reads,
            of the struct `a`, that field only; the answer has a struct `a` of such fields.
        size: length of the file in bytes. Needed with a callable; for a path it is checked.
        metadata: what `stripped_footer` gave for this very file. The file's own footer is then
            not read, and for no rows nothing is read at all.
        merge_gap: ranges at most this many bytes apart are fetched as one. By default 0 for a
            path. For a callable, ranges at most 64 KiB apart are by default, the nearest ones
            first, while what is fetched in vain is at most 4% of what is wanted.
        threads: How many threads decode (and read a local file) at once; by default one for each
            core. The callable is called from the calling thread alone.

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
    if metadata is not None:
        return Footer(metadata).read(
            source, rows, columns, size=size, merge_gap=merge_gap, threads=threads
        )
    wanted = None if columns is None else list(columns)
    table, stats = _native.read_rows(source, rows, wanted, size, merge_gap, threads)
    return table, ReadStats(*stats)


def stripped_footer(source: str | PathLike[str] | Fetch, *, size: int | None = None) -> bytes:
    """Return the part of the file's footer that finding rows needs, to be kept elsewhere.

    It holds the schema, row groups, column chunks and the offset index of every column, and says
    where in the file the column indexes are. Left out are bloom filters, everything that holds
    values (statistics), and the key-value metadata, where Hudi keeps its own bloom filter; only the
    Arrow schema stays of the latter, since it decides the types of the columns.

    Args:
        source: a local path, or a callable that fetches byte ranges.
        size: length of the file in bytes. Needed with a callable; for a path it is checked.

    Raises:
        ParquetReadError: the file is malformed or encrypted.
        OSError: the local file cannot be read.
    """
    return _native.stripped_footer(source, size)


def plan_rows(metadata: Buffer, rows: Rows, columns: Sequence[str] | None = None) -> RowPlan:
    """Tell what `read_rows` would read, from a stripped footer alone.

    See `Footer.plan`, which this is.

    Raises:
        ParquetReadError: `metadata` is malformed.
        ValueError: bad `rows`, or an unknown or ambiguous column.
    """
    return Footer(metadata).plan(rows, columns)


def row_count(metadata: Buffer) -> int:
    """Return the number of rows in the file that a stripped footer was made of.

    Raises:
        ParquetReadError: `metadata` is malformed.
    """
    return _native.row_count(metadata)
