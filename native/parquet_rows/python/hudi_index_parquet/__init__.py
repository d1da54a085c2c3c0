"""Reads rows by position from Parquet files, page by page.

Only the data pages that contain the rows are fetched and decoded; the file's offset index locates
them. A file without an offset index is read by whole column chunks, with the same result.

    footer = Footer(stripped_footer("part-0.parquet"))
    table, stats = footer.read("part-0.parquet", numpy.array([7, 4711]), ["name"])

Every function raises `ParquetReadError` for bytes that are not readable Parquet.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from hudi_index_parquet import _native
from hudi_index_parquet._native import ParquetReadError

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
    "SomeLeaves",
    "Tree",
    "TreeLeaves",
    "Trees",
    "WrittenLeaves",
    "check_while_working",
    "is_wanted",
    "plan_rows",
    "polynomials",
    "raise_ended",
    "read_columns",
    "read_files",
    "read_leaf",
    "read_rows",
    "row_count",
    "rows_between",
    "rows_of_keys",
    "stripped_footer",
    "write_leaves",
]

_SECOND = 10**9  # in nanoseconds

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


def check_while_working(check: Callable[[], None]) -> None:
    """Have a function called every 50 ms or so by each thread that waits for this module, between
    pages. If it raises, or the handler of a signal does, the work ends and that is raised.

    The first function is called; later ones are ignored.
    """
    _native.check_while_working(check)


is_wanted: Callable[[], bool] = _native.is_wanted
"""Tells other native code, which no exception can pass, whether this thread's work is still wanted:
handles signals and calls the function of `check_while_working`. After False, call `raise_ended`. It
is native itself, so that no signal's handler raises in its caller."""


def raise_ended() -> None:
    """Raise that for which `is_wanted` was False in this thread, once; else do nothing."""
    _native.raise_ended()


class PageCache:
    """Opened pages, decompressed and with the place of each value known, for later reads of the
    same rows or of others on the same pages. One cache serves any number of local files and
    threads.

    A page is kept for a file in one state: its device, inode, size and times. A file that was
    written to is read anew; of one that changed within the last moment, no page is kept. In a
    process that was forked from the one that made it, the cache keeps nothing.

    Args:
        budget: The maximum size in bytes.

    Raises:
        ValueError: `budget` is 0.
    """

    __slots__ = ("_native",)

    def __init__(self, budget: int) -> None:
        self._native = _native.PageCache(budget)

    @property
    def bytes(self) -> int:
        """The size of what is kept."""
        return self._native.bytes

    def clear(self) -> None:
        """Forget all pages."""
        self._native.clear()


Tree: TypeAlias = "tuple[str, list[Tree]] | tuple[str, bool, str, object]"
"""A condition: `("and" | "or", [tree, ...])`, of none TRUE and never TRUE, or a test of a top-level
column, `(column, is_negated, operator, value)`. The operators are:

    "null"        None; no other test, negated or not, is TRUE of NULL
    "=" "<" "<="  an integer (also days, units of time, unscaled decimals), a float, or bytes
    "in"          a list of such values of one kind
    "like"        the texts before, between and after the wildcards for any text, as bytes

Texts compare by unsigned bytes; NaN equals itself and is above all others; -0.0 is 0.0."""


class Condition:
    """A condition on rows, for `Footer.matching`.

    Raises:
        ValueError: an unknown operator.
        TypeError: a value of another type.
    """

    __slots__ = ("_native",)

    def __init__(self, tree: Tree) -> None:
        self._native = _native.Condition(tree)


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


class Footer:
    """A stripped footer, parsed once for any number of reads, also from several threads.

    Args:
        data: The result of `stripped_footer`.

    Raises:
        ParquetReadError: `data` is malformed.
    """

    __slots__ = ("_native",)

    def __init__(self, data: Buffer) -> None:
        self._native = _native.Footer(data)

    @property
    def rows(self) -> int:
        """Number of rows in the file."""
        return self._native.rows

    @property
    def plain_bytes(self) -> int:
        """Bytes of all columns before compression; see `RowPlan.plain_bytes`."""
        return self._native.plain_bytes

    @property
    def schema(self) -> pa.Schema:
        """All columns of the file, with the types that `read` returns."""
        return self._native.schema

    def plan(self, rows: Rows, columns: Sequence[str] | None = None) -> RowPlan:
        """Return what `read` would read, without reading anything.

        If no ranges are merged, `read` then fetches `page_bytes`, or less: nothing of pages that
        are kept, and no dictionary of which no page needs a value. Compare this number with
        `chunk_bytes` and `total_bytes` to choose between pages, whole chunks and a scan.

        Raises:
            ParquetReadError: the footer contradicts itself.
            ValueError: invalid `rows`, or an unknown or ambiguous column.
        """
        return RowPlan(*self._native.plan(rows, None if columns is None else list(columns)))

    def page_starts(self, columns: Sequence[str] | None = None) -> list[int]:
        """Return the ascending row positions at which pages of the largest of the columns begin; of
        a row group without an offset index, the position of its first row.

        To read many rows in portions, split them there: a page that spans two portions is read and
        decoded twice.

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
        pages: PageCache | None = None,
        is_scan: bool = False,
    ) -> tuple[pa.Table, ReadStats]:
        """Read the rows at the given positions of the file that has this footer; see `read_rows`
        for the other arguments. Without rows, nothing is read at all.

        Args:
            pages: keeps opened pages of a local file; None for no page.
            is_scan: whether a page is kept only if it is read a second time, since a scan reads
                more pages than are wanted again.
        """
        wanted = None if columns is None else list(columns)
        cache = None if pages is None else pages._native
        table, stats = self._native.read(
            source, rows, wanted, size, merge_gap, threads, cache, is_scan
        )
        return table, ReadStats(*stats)

    def matching(
        self,
        source: str | PathLike[str],
        rows: Rows,
        condition: Condition,
        columns: Sequence[str] | None = None,
        *,
        size: int | None = None,
        threads: int | None = None,
        pages: PageCache | None = None,
        is_scan: bool = False,
    ) -> tuple[pa.Int64Array, pa.Table, ReadStats] | None:
        """Read those of the rows of a local file that make a condition TRUE. The columns of the
        condition are read first, the others only where rows are left. See `read` for arguments and
        errors.

        Returns:
            The positions of these rows, ascending, their values, and the statistics. None if a
            column of the condition is not read by opened pages: columns that are nested, boolean,
            or of other encodings than PLAIN and dictionaries, and remote files.

        Raises:
            ValueError: besides, if a test does not fit the values of its column.
        """
        wanted = None if columns is None else list(columns)
        cache = None if pages is None else pages._native
        found = self._native.matching(
            source, rows, condition._native, wanted, size, threads, cache, is_scan
        )
        return None if found is None else (found[0], found[1], ReadStats(*found[2]))

    def count(
        self,
        source: str | PathLike[str],
        rows: Rows,
        condition: Condition,
        *,
        size: int | None = None,
        threads: int | None = None,
        pages: PageCache | None = None,
        is_scan: bool = False,
    ) -> tuple[int, ReadStats] | None:
        """Return how many of the rows of a local file make a condition TRUE, and the statistics;
        None as for `matching`, which also has the same arguments and errors."""
        cache = None if pages is None else pages._native
        counted = self._native.count(source, rows, condition._native, size, threads, cache, is_scan)
        return None if counted is None else (counted[0], ReadStats(*counted[1]))

    def bounds(
        self,
        source: str | PathLike[str] | Fetch,
        path: Sequence[str],
        *,
        size: int | None = None,
    ) -> list[Bounds] | None:
        """Return what the file's column index states about a column's values: page by page, in row
        order, without gaps. Only the column index of that column is read.

        Args:
            source, size: see `read_rows`.
            path: The column's name, or the names of a struct and of a field in it, and so on.

        Returns:
            None if no bounds are reliable: there is no such column, it is inside an array or map,
            its type is INT96 or a decimal in a byte array, or the file's writer is unknown.
            A row group without a column index is a single `Bounds` with nothing known.

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
    """Read the rows at the given positions. For several reads with the same `metadata`, a `Footer`
    is faster.

    Args:
        source: a local path, or a callable that fetches byte ranges.
        rows: 0-based positions in the file, ascending and unique.
        columns: names of top-level columns in the requested order; None for all columns. `a.b`
            reads only this field of the struct `a`; the result has a struct `a` of such fields.
        size: length of the file in bytes. Required with a callable; checked with a path.
        metadata: the result of `stripped_footer` for this very file. The file's own footer is then
            not read, and without rows, nothing is read at all.
        merge_gap: ranges at most this many bytes apart are fetched as one. The default for a path
            is 0. By default for a callable, ranges at most 64 KiB apart are merged, the smallest
            gaps first, as long as the unneeded bytes are at most 4% of the needed ones.
        threads: maximum number of threads that decode (and read a local file); by default one per
            core. The callable is called from the calling thread only.

    Returns:
        The rows in file order, with the types of the file. INT96 timestamps are `timestamp[us]`
        without a time zone, so that the years 1 to 9999 fit. If the writer stored an Arrow schema,
        it decides between types that the file does not distinguish.

    Raises:
        ParquetReadError: the file or `metadata` is malformed or encrypted.
        ValueError: invalid `rows` (the message names the position), an unknown or ambiguous column,
            or a callable that returns the wrong number of buffers or bytes.
        OSError: the local file cannot be read.
    """
    if metadata is not None:
        return Footer(metadata).read(
            source, rows, columns, size=size, merge_gap=merge_gap, threads=threads
        )
    wanted = None if columns is None else list(columns)
    table, stats = _native.read_rows(source, rows, wanted, size, merge_gap, threads)
    return table, ReadStats(*stats)


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


def read_files(
    files: Sequence[FileRows],
    columns: Sequence[str] | None = None,
    *,
    condition: Condition | None = None,
    threads: int | None = None,
    pages: PageCache | None = None,
    is_scan: bool = False,
) -> FilesRead | None:
    """Read a few rows of each of many local files in one call, several pages at once. A call for
    each file would take longer than reading a few pages.

    Args:
        files: one or more files.
        columns, threads: see `read_rows`.
        condition: only rows that make it TRUE are read; its columns are read first. Of a range of
            rows, those are left out that the file's column index rules out.
        pages, is_scan: see `Footer.read`.

    Returns:
        None if a column does not have the same type in all files, or a column of the condition is
        not read by opened pages; see `Footer.matching`.

    Raises:
        ParquetReadError: a file is malformed or encrypted.
        ValueError: no file, invalid rows, an unknown or ambiguous column, or a test that does not
            fit the values of its column.
        OSError: a file cannot be read.
    """
    wanted = [(each.footer._native, each.path, each.size, each.rows) for each in files]
    names = None if columns is None else list(columns)
    tested = None if condition is None else condition._native
    cache = None if pages is None else pages._native
    found = _native.read_files(wanted, names, tested, threads, cache, is_scan)
    if found is None:
        return None
    rows, counts, tested, stats = found
    return FilesRead(rows, counts, tested, [ReadStats(*each) for each in stats])


def read_columns(
    files: Sequence[tuple[str | PathLike[str], int | None]],
    columns: Sequence[str],
    *,
    threads: int | None = None,
) -> tuple[pa.RecordBatch, list[int]] | None:
    """Read whole columns of many small local files in one call, several files at once. Their
    footers are read without Hudi's Bloom filter.

    Args:
        files: one or more paths, each with the length of the file in bytes, which is checked.
        columns, threads: see `read_rows`.

    Returns:
        The rows of all files in one batch, file by file, and the number of rows of each file. None
        if a column does not have the same type in all files.

    Raises:
        ParquetReadError: a file is malformed or encrypted.
        ValueError: no file, or an unknown or ambiguous column.
        OSError: a file cannot be read.
    """
    return _native.read_columns(list(files), list(columns), threads)


class FileStates:
    """The states of many local files, to find out by one call which of them have changed.

    Args:
        files: The path of each, and its state, as `os.stat` returned it.
    """

    def __init__(self, files: Sequence[tuple[str | PathLike[str], os.stat_result]]) -> None:
        self._native = _native.FileStates([(path, _state(status)) for path, status in files])

    def unchanged(self, positions: Buffer, *, threads: int | None = None) -> bytes:
        """Return one byte for each position: 1 if the file there still exists, with the same
        inode, size and times; else 0.

        Args:
            positions: 0-based positions among the files: a buffer of 32-bit signed integers.
            threads: The maximum number of threads; None for one per core.

        Raises:
            ValueError: a position is out of range.
        """
        return self._native.unchanged(positions, threads)


def _state(status: os.stat_result) -> tuple[int, int, int, int, int, int, int]:
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        *divmod(status.st_mtime_ns, _SECOND),
        *divmod(status.st_ctime_ns, _SECOND),
    )


class Routing:
    """A run of packed pairs of a key and a file, to find out which files may hold which keys.

    Methods get all packed pairs as one buffer; bytes of pairs that a method does not read may have
    any value. They raise `ValueError` for a buffer that is too short.

    Args:
        base: What is taken off each key, an unsigned 64-bit integer.
        shift: The number of lowest bits that are then cut off.
        key_bits, bucket_bits, file_bits: The number of bits of what is left of a key, of its
            highest bits, which choose a bucket, and of a file's number.
        pairs: The number of pairs.
        directory: The position of the first pair of each bucket, and the end of the last one, as
            little-endian unsigned 32-bit integers.

    Raises:
        ParquetReadError: the directory does not fit.
    """

    def __init__(
        self,
        *,
        base: int,
        shift: int,
        key_bits: int,
        bucket_bits: int,
        file_bits: int,
        pairs: int,
        directory: bytes,
    ) -> None:
        layout = base, shift, key_bits, bucket_bits, file_bits, pairs
        self._native = _native.Routing(layout, directory)

    def parts_of(self, keys: Buffer) -> list[tuple[int, int]]:
        """Return the parts of the packed pairs that `route` reads: first byte and end of each.

        Args:
            keys: Unsigned 64-bit integers.
        """
        return self._native.parts_of(keys)

    def route(self, keys: Buffer, files: int, packed: Buffer) -> tuple[bytes, bytes]:
        """Return which keys each file may hold: where the numbers of each file's keys begin, and
        the end of the last one; and these numbers, ascending. Both are 32-bit signed integers.

        Args:
            keys: Unsigned 64-bit integers, in any order.
            files: The number of files; others are left out.
        """
        return self._native.route(keys, files, packed)

    def between(self, low: int, high: int) -> tuple[int, int, int]:
        """Return the number of pairs that `route_between` reads, their first byte, and the end."""
        return self._native.between(low, high)

    def route_between(self, low: int, high: int, files: int, packed: Buffer) -> bytes:
        """Return a byte for each file: 1 if it may hold a key between two, both included; else 0.

        Args:
            files: The number of files; others are left out.
        """
        return self._native.route_between(low, high, files, packed)

    def unpack(self, packed: Buffer) -> tuple[bytes, bytes]:
        """Return all pairs, in order: what is left of each key, as unsigned 64-bit integers, and
        the files, as unsigned 32-bit integers."""
        return self._native.unpack(packed)


def stripped_footer(source: str | PathLike[str] | Fetch, *, size: int | None = None) -> bytes:
    """Return the part of the file's footer that is needed to find rows, for storage elsewhere.

    It contains the schema, the row groups, the column chunks, the offset index of every column, and
    the locations of the column indexes in the file. It omits bloom filters, everything that holds
    values (statistics), and the key-value metadata, where Hudi stores its own bloom filter. Of the
    key-value metadata only the Arrow schema is kept, because it decides the types of the columns.

    Args:
        source: a local path, or a callable that fetches byte ranges.
        size: length of the file in bytes. Required with a callable; checked with a path.

    Raises:
        ParquetReadError: the file is malformed or encrypted.
        OSError: the local file cannot be read.
    """
    return _native.stripped_footer(source, size)


def plan_rows(metadata: Buffer, rows: Rows, columns: Sequence[str] | None = None) -> RowPlan:
    """Return what `read_rows` would read, from a stripped footer alone.

    The same as `Footer.plan`.

    Raises:
        ParquetReadError: `metadata` is malformed.
        ValueError: invalid `rows`, or an unknown or ambiguous column.
    """
    return Footer(metadata).plan(rows, columns)


def polynomials(values: pa.Array) -> bytes:
    """Return a number for each binary value: the sum of (byte + 1) times M to the power of the
    byte's position, counted from 1, modulo 2^64, with M = 0x9E3779B97F4A7C15. NULLs count as empty.

    Returns:
        Unsigned 64-bit integers, little-endian.

    Raises:
        ValueError: `values` is not binary.
    """
    return _native.polynomials(values)


def row_count(metadata: Buffer) -> int:
    """Return the number of rows in the file that has this stripped footer.

    Raises:
        ParquetReadError: `metadata` is malformed.
    """
    return _native.row_count(metadata)


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


def rows_between(
    source: int | Sequence[bytes],
    leaves: SomeLeaves,
    spans: Sequence[tuple[int, bytes, bytes | None]],
) -> bytes | None:
    """Find the rows with keys in intervals, in many leaves of a B+ tree index by one call.

    Args:
        source: The descriptor of an open file, or the bytes of each leaf to read.
        leaves: The leaves to read.
        spans: For each interval: the position of its leaf in `leaves.numbers`, the least key, and
            the least key above the last one, or None for no bound.

    Returns:
        The row ids, ascending and unique, as unsigned 32-bit integers in the machine's byte order;
        None if a leaf does not have its checksum.

    Raises:
        ParquetReadError: a leaf contradicts itself.
        ValueError: there is no such leaf.
        OSError: the file cannot be read.
    """
    found: bytes | None = _native.rows_between(source, leaves, list(spans))
    return found


def rows_of_keys(
    source: int | Sequence[bytes],
    leaves: SomeLeaves,
    keys: bytes,
    offsets: Buffer | np.ndarray[Any, np.dtype[np.int64]],
    parts: Sequence[tuple[int, int]],
) -> bytes | None:
    """Find the rows of single keys; otherwise like `rows_between`.

    Args:
        keys: The keys in order, one after the other.
        offsets: Where each key starts, and the end of the last one, as 64-bit signed integers.
        parts: The keys to find in each leaf to read, by their numbers: [start, end).
    """
    found: bytes | None = _native.rows_of_keys(
        source, leaves, keys, memoryview(offsets), list(parts)
    )
    return found


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


class Trees:
    """B+ trees of one column in many entries, to be searched by one call. Safe to use from several
    threads.

    Args:
        trees: The leaves of each.
    """

    def __init__(self, trees: Sequence[TreeLeaves]) -> None:
        self._native = _native.Trees(list(trees))

    def rows_of_keys(
        self,
        keys: bytes,
        offsets: Buffer,
        positions: Buffer,
        starts: Buffer,
        numbers: Buffer,
        most: int,
    ) -> tuple[bytes, bytes]:
        """Find the rows of single keys, for each tree of other ones.

        Args:
            keys, offsets: See the function `rows_of_keys`.
            positions: Those of the trees to search, as 32-bit signed integers like all that follow.
            starts: Where the numbers of each such tree's keys begin, and the end of the last one.
            numbers: The numbers of keys, ascending for each tree.
            most: The most rows of a tree that are returned.

        Returns:
            The number of rows found in each tree, as 32-bit signed integers; -1 for a tree in which
            more are found, which is damaged, or of which a leaf is a set of rows. And the row ids
            of all the others, one tree after the other, as unsigned 32-bit integers.

        Raises:
            ValueError: a position or a number is out of range.
            OSError: a file cannot be read.
        """
        return self._native.rows_of_keys(keys, offsets, positions, starts, numbers, most)


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


def read_leaf(body: bytes, rows: int, keys: int) -> Leaf:
    """Unpack a leaf, whose checksum the caller has checked; integers are in the machine's byte
    order.

    Args:
        rows: The number of rows that the tree's record of the leaf states.
        keys: The number of keys.

    Raises:
        ParquetReadError: the leaf contradicts itself.
    """
    return Leaf(*_native.read_leaf(body, rows, keys))


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


def write_leaves(
    keys: Buffer | np.ndarray[Any, np.dtype[np.uint64]],
    key_offsets: Buffer | np.ndarray[Any, np.dtype[np.int64]] | None,
    counts: Buffer | np.ndarray[Any, np.dtype[np.int64]],
    rows: Buffer | np.ndarray[Any, np.dtype[np.uint32]],
    *,
    offset: int,
    before: int,
    keeps_last: bool = False,
) -> WrittenLeaves:
    """Write sorted keys with their rows as leaves.

    Args:
        keys: In order, each once: unsigned 64-bit integers; or byte strings of up to 65,535 bytes,
            one after the other.
        key_offsets: Where each byte string starts, and the end of the last one; None for integers.
        counts: The number of rows of each key, from 1 to 65,535.
        rows: The row ids; those of one key are adjacent and in order.
        offset: Where the first leaf will start among the bytes of all leaves.
        before: The number of rows in the leaves before the first one.
        keeps_last: Whether to leave out the last leaf, which may have room for keys that follow.

    Raises:
        ValueError: keys, counts and rows contradict each other.
    """
    offsets = None if key_offsets is None else memoryview(key_offsets)
    buffers = memoryview(keys), offsets, memoryview(counts), memoryview(rows)
    return WrittenLeaves(*_native.write_leaves(*buffers, offset, before, keeps_last))
