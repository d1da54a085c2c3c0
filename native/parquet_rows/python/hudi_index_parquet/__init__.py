"""Reads rows by position from Parquet files, page by page.

Only the data pages that contain the rows are fetched and decoded; the file's offset index locates
them. A file without an offset index is read by whole column chunks, with the same result.

    footer = Footer(stripped_footer("part-0.parquet"))
    table, stats = footer.read("part-0.parquet", numpy.array([7, 4711]), ["name"])

Every function raises `ParquetReadError` for bytes that are not readable Parquet. The functions and
classes are native, and documented in `_native.pyi`; the records that they take and return are here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from hudi_index_parquet._native import (
    Condition,
    FileStates,
    Footer,
    PageCache,
    ParquetReadError,
    Routing,
    Trees,
    check_while_working,
    file_footer,
    folder_entries,
    folder_file_names,
    is_wanted,
    polynomials,
    raise_ended,
    read_columns,
    read_files,
    read_leaf,
    read_rows,
    rows_between,
    rows_of_keys,
    stripped_footer,
    write_leaves,
)

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from typing_extensions import Buffer

__all__ = [
    "Bounds",
    "Condition",
    "Fetch",
    "FileRows",
    "FileStates",
    "FilesRead",
    "Footer",
    "Leaf",
    "PageCache",
    "ParquetReadError",
    "ReadStats",
    "Routing",
    "RowPlan",
    "Rows",
    "RowsFound",
    "SomeLeaves",
    "Tree",
    "TreeLeaves",
    "Trees",
    "WrittenLeaves",
    "check_while_working",
    "file_footer",
    "folder_entries",
    "folder_file_names",
    "is_wanted",
    "polynomials",
    "raise_ended",
    "read_columns",
    "read_files",
    "read_leaf",
    "read_rows",
    "rows_between",
    "rows_of_keys",
    "stripped_footer",
    "write_leaves",
]

Fetch: TypeAlias = "Callable[[list[tuple[int, int]]], Iterable[Buffer]]"
"""Fetches byte ranges `[(start, end), ...]`, ends exclusive: one buffer per range, in their order.

It is called from the thread that called `read_rows` or `stripped_footer`. These functions pass its
exceptions on unchanged.
"""

Rows: TypeAlias = "range | Buffer | np.ndarray[Any, np.dtype[np.signedinteger[Any]]]"
"""0-based row positions in a file, ascending and unique: a range with step 1, or a one-dimensional
buffer of 64-bit signed integers, such as a NumPy array (a buffer to type checkers only from Python
3.12 on)."""


@dataclass(frozen=True, slots=True)
class ReadStats:
    """What one read fetched and decoded, including the footer if it was read."""

    calls: int
    """Fetch rounds: calls of the callable, or batches of reads from a local file."""
    ranges: int
    """Ranges fetched in those rounds, after nearby ranges were merged."""
    bytes: int
    """Bytes in those ranges."""
    pages: int
    """Data pages that held the rows; a column chunk without an offset index counts as one."""
    kept: int = 0
    """Those of these pages that were kept by an earlier read; no byte was read for them."""


Tree: TypeAlias = "tuple[str, list[Tree]] | tuple[str, bool, str, object]"
"""A condition: `("and" | "or", [tree, ...])`, of none TRUE and never TRUE, or a test of a top-level
column, `(column, is_negated, operator, value)`. The operators are:

    "null"        None; no other test, negated or not, is TRUE of NULL
    "=" "<" "<="  an integer (also days, units of time, unscaled decimals), a float, or bytes
    "in"          a list of such values of one kind
    "like"        the texts before, between and after the wildcards for any text, as bytes

Texts compare by unsigned bytes; NaN equals itself and is above all others; -0.0 is 0.0."""


@dataclass(frozen=True, slots=True)
class RowPlan:
    """The cost of reading a set of rows; sizes are as in the file (compressed) unless noted."""

    pages: int
    """Data pages that contain the rows; a column chunk without an offset index counts as one."""
    page_bytes: int
    """Bytes of those pages and of the dictionary pages that they need."""
    ranges: int
    """Byte ranges that all these pages occupy; adjacent pages form one range."""
    chunk_bytes: int
    """Bytes of the columns' whole chunks in the row groups that contain the rows."""
    total_bytes: int
    """Bytes of all chunks of the columns in the file."""
    row_groups: int
    """Row groups that contain the rows."""
    group_rows: int
    """Rows in those row groups."""
    plain_bytes: int
    """Bytes of the columns' chunks in those row groups before compression. Repeated values take
    more space once they are decoded."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Consecutive rows of a file, and what is known about a column's values in them."""

    start: int
    """Position of the first row."""
    stop: int
    """Position of the first row after them."""
    nulls: int | None
    """Number of NULL values; None if unknown."""
    range: tuple[Any, Any] | None
    """Lower and upper bound of the values that are neither NULL nor NaN; None if unknown. They need
    not be among the values. They are bool, int (also for days, time units and unscaled decimals),
    float, or bytes in unsigned order."""


@dataclass(frozen=True, slots=True)
class FileRows:
    """Rows of one of several local files."""

    footer: Footer
    """The file's footer."""
    path: str | PathLike[str]
    """The file."""
    rows: Rows
    """0-based positions, ascending and unique."""
    size: int | None = None
    """The length of the file in bytes, which is checked."""


class RowsFound(NamedTuple):
    """Rows of one file that make a condition TRUE; see `Footer.matching`."""

    count: int
    """The number of rows."""
    positions: pa.Int64Array | None
    """Their positions in the file, ascending; None if they are not wanted."""
    rows: list[pa.RecordBatch]
    """Their values, in one batch or several."""
    stats: ReadStats
    """What was read."""


class FilesRead(NamedTuple):
    """Rows of many files; see `read_files`."""

    rows: pa.RecordBatch
    """The rows, file by file."""
    counts: list[int]
    """The number of rows of each file."""
    tested: list[int]
    """The number of rows of each file that were tested, or read without a condition."""
    stats: list[ReadStats]
    """What was read of each file."""


class SomeLeaves(NamedTuple):
    """Some leaves of a B+ tree index.

    Attributes:
        records: What the tree says of leaves, one after the other: 37 bytes each (docs/format.md).
        numbers: Those of the leaves to read, from 0.
        start: The offset in the file to which the offsets in the records are relative.
    """

    records: bytes
    numbers: list[int]
    start: int = 0


class TreeLeaves(NamedTuple):
    """The leaves of one column in one entry of a B+ tree index.

    Attributes:
        file: The descriptor of the entry's file, which stays open as long as it is searched.
        start: The offset in the file to which the offsets in the records are relative.
        rows: The number of rows of the base file.
        records: What the tree says of the leaves, one after the other.
        first_keys: The first key of each leaf.
    """

    file: int
    start: int
    rows: int
    records: bytes
    first_keys: list[bytes]


class Leaf(NamedTuple):
    """A leaf of a B+ tree index, unpacked.

    Attributes:
        keys: Unsigned 64-bit integers; or byte strings, one after the other.
        key_offsets: Where each byte string starts, and the end of the last one, as signed 64-bit
            integers; None for integers.
        starts: Where the rows of each key start, and the number of rows; as signed 64-bit integers.
        rows: The row ids, as unsigned 32-bit integers.
    """

    keys: bytes
    key_offsets: bytes | None
    starts: bytes
    rows: bytes


class WrittenLeaves(NamedTuple):
    """Leaves of a B+ tree index as written.

    Attributes:
        bodies: Their bytes, one after the other.
        records: What the tree says of them, 37 bytes each (docs/format.md).
        starts: The position of the first key of each leaf, and the end of the keys of the last one.
    """

    bodies: bytes
    records: bytes
    starts: list[int]
