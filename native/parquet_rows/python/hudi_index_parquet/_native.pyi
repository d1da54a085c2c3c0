"""The functions and classes of `hudi_index_parquet`, which are native."""

from collections.abc import Callable, Sequence
from os import PathLike, stat_result
from typing import Any

import numpy as np
import pyarrow as pa
from typing_extensions import Buffer

from hudi_index_parquet import (
    Bounds,
    Fetch,
    FileRows,
    FilesRead,
    Leaf,
    ReadStats,
    RowPlan,
    Rows,
    RowsFound,
    SomeLeaves,
    Tree,
    TreeLeaves,
    WrittenLeaves,
)

class ParquetReadError(ValueError):
    """The file, or its stored metadata, is not readable Parquet."""

def is_wanted() -> bool:
    """Tell other native code, which no exception can pass, whether this thread's work is still
    wanted: handles signals and calls the function of `check_while_working`. After False, call
    `raise_ended`. It is native itself, so that no signal's handler raises in its caller."""

def check_while_working(check: Callable[[], None]) -> None:
    """Have a function called every 50 ms or so by each thread that waits for this module, between
    pages. If it raises, or the handler of a signal does, the work ends and that is raised.

    The first function is called; later ones are ignored.
    """

def raise_ended() -> None:
    """Raise that for which `is_wanted` was False in this thread, once; else do nothing."""

class PageCache:
    """Opened pages, decompressed and with the place of each value known, for later reads of the
    same rows or of others on the same pages; and footers. One cache serves any number of local
    files and threads.

    A page is kept for a file in one state: its device, inode, size and times. A file that was
    written to is read anew; of one that changed within the last moment, no page is kept. In a
    process that was forked from the one that made it, the cache keeps nothing.

    Args:
        budget: The maximum size in bytes.

    Raises:
        ValueError: `budget` is 0.
    """

    def __init__(self, budget: int) -> None: ...
    @property
    def bytes(self) -> int:
        """The size of what is kept."""

    def clear(self) -> None:
        """Forget all pages."""

class Condition:
    """A condition on rows, for `Footer.matching`.

    Raises:
        ValueError: an unknown operator.
        TypeError: a value of another type.
    """

    def __init__(self, tree: Tree) -> None: ...

class Footer:
    """A stripped footer, parsed once for any number of reads, also from several threads.

    Args:
        data: The result of `stripped_footer`.

    Raises:
        ParquetReadError: `data` is malformed.
    """

    def __init__(self, data: Buffer) -> None: ...
    @property
    def rows(self) -> int:
        """Number of rows in the file."""

    @property
    def plain_bytes(self) -> int:
        """Bytes of all columns before compression; see `RowPlan.plain_bytes`."""

    @property
    def schema(self) -> pa.Schema:
        """All columns of the file, with the types that `read` returns."""

    def plan(self, rows: Rows, columns: Sequence[str] | None = None) -> RowPlan:
        """Return what `read` would read, without reading anything.

        Of a local file, `read` then fetches `page_bytes`, or less: nothing of pages that
        are kept, and no dictionary of which no page needs a value. Compare this number with
        `chunk_bytes` and `total_bytes` to choose between pages, whole chunks and a scan.

        Raises:
            ParquetReadError: the footer contradicts itself.
            ValueError: invalid `rows`, or an unknown or ambiguous column.
        """

    def column_bytes(
        self,
        source: str | PathLike[str],
        columns: Sequence[str],
        *,
        size: int | None = None,
        pages: PageCache | None = None,
    ) -> list[tuple[int, int]]:
        """Return for each column the bytes of the pages, dictionaries included, that a read of all
        rows of a local file reads, since they are not kept in `pages`; and the bytes of all pages
        before compression. Nothing is read.

        Raises:
            ParquetReadError: the file does not have this size.
            ValueError: an unknown or ambiguous column, or no local file.
            OSError: the local file cannot be read.
        """

    def page_starts(self, columns: Sequence[str] | None = None) -> list[int]:
        """Return the ascending row positions at which pages of the largest of the columns begin; of
        a row group without an offset index, the position of its first row.

        To read many rows in portions, split them there: a page that spans two portions is read and
        decoded twice.

        Raises:
            ValueError: an unknown or ambiguous column.
        """

    def read(
        self,
        source: str | PathLike[str] | Fetch,
        rows: Rows,
        columns: Sequence[str] | None = None,
        *,
        size: int | None = None,
        threads: int | None = None,
        pages: PageCache | None = None,
        is_scan: bool = False,
    ) -> tuple[pa.Table, ReadStats]:
        """Read the rows at the given positions of the file that has this footer; see `read_rows`
        for the other arguments. Without rows, nothing is read at all.

        Args:
            pages: keeps opened pages of a local file; None for no page.
            is_scan: whether a page is kept only if it is read a second time, since a scan reads
                more pages than are wanted again; unless few of its rows are wanted.
        """

    def matching(
        self,
        source: str | PathLike[str],
        rows: Rows,
        condition: Condition,
        columns: Sequence[str] | None = None,
        *,
        numbered: bool = True,
        size: int | None = None,
        threads: int | None = None,
        pages: PageCache | None = None,
        is_scan: bool = False,
    ) -> RowsFound | None:
        """Read those of the rows of a local file that make a condition TRUE. The columns of the
        condition are read first, the others only where rows are left. See `read` for arguments and
        errors.

        Args:
            numbered: whether the positions of the rows are wanted.

        Returns:
            None if a column of the condition is not read by opened pages: columns that are nested
            or of other encodings than PLAIN and dictionaries, and remote files.

        Raises:
            ValueError: besides, if a test does not fit the values of its column.
        """

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

def read_rows(
    source: str | PathLike[str] | Fetch,
    rows: Rows,
    columns: Sequence[str] | None = None,
    *,
    size: int | None = None,
    metadata: Buffer | None = None,
    threads: int | None = None,
) -> tuple[pa.Table, ReadStats]:
    """Read the rows at the given positions. For several reads with the same `metadata`, a `Footer`
    is faster.

    Args:
        source: a local path, or a callable that fetches byte ranges.
        rows: 0-based positions in the file, ascending and unique.
        columns: names of top-level columns in the requested order; None for all columns. `a.b`
            reads only this field of the struct `a`; the result has a struct `a` of such fields.
        size: length of the file in bytes. Required with a callable; checked with a path. Of a
            callable, ranges at most 64 KiB apart are fetched as one, the smallest gaps first, as
            long as the unneeded bytes are at most 4% of the needed ones.
        metadata: the result of `stripped_footer` for this very file. The file's own footer is then
            not read, and without rows, nothing is read at all.
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

class FileStates:
    """The states of many local files, to find out by one call which of them have changed.

    Args:
        files: The path of each, and its state, as `os.stat` returned it.
    """

    def __init__(self, files: Sequence[tuple[str | PathLike[str], stat_result]]) -> None: ...
    def unchanged(self, positions: Buffer, *, threads: int | None = None) -> bytes:
        """Return one byte for each position: 1 if the file there still exists, with the same
        inode, size and times; else 0.

        Args:
            positions: 0-based positions among the files: a buffer of 32-bit signed integers.
            threads: The maximum number of threads; None for one per core.

        Raises:
            ValueError: a position is out of range.
        """

def folder_entries(folder: str | PathLike[str]) -> list[tuple[str, tuple[int, float] | None]]:
    """Return what is in a local folder: each name with a file's size in bytes and the time of its
    last write in seconds since the epoch, or None for a folder. Links are followed; links to
    nothing are left out.

    The interpreter's lock is given away once: `os.scandir` gives it away for each name, and each
    time other threads may make the caller wait for it.

    Raises:
        OSError: the folder, or what is in it, cannot be looked at.
    """

def folder_file_names(folder: str | PathLike[str]) -> list[str]:
    """Return the names of the files in a local folder, in a tenth of that time. Raises what
    `folder_entries` raises.
    """

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
    ) -> None: ...
    def parts_of(self, keys: Buffer) -> list[tuple[int, int]]:
        """Return the parts of the packed pairs that `route` reads: first byte and end of each.

        Args:
            keys: Unsigned 64-bit integers.
        """

    def route(self, keys: Buffer, files: int, packed: Buffer) -> tuple[bytes, bytes]:
        """Return which keys each file may hold: where the numbers of each file's keys begin, and
        the end of the last one; and these numbers, ascending. Both are 32-bit signed integers.

        Args:
            keys: Unsigned 64-bit integers, in any order.
            files: The number of files; others are left out.
        """

    def between(self, low: int, high: int) -> tuple[int, int, int]:
        """Return the number of pairs that `route_between` reads, their first byte, and the end."""

    def route_between(self, low: int, high: int, files: int, packed: Buffer) -> bytes:
        """Return a byte for each file: 1 if it may hold a key between two, both included; else 0.

        Args:
            files: The number of files; others are left out.
        """

    def unpack(self, packed: Buffer) -> tuple[bytes, bytes]:
        """Return all pairs, in order: what is left of each key, as unsigned 64-bit integers, and
        the files, as unsigned 32-bit integers."""

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

def file_footer(
    source: str | PathLike[str] | Fetch,
    keys: Sequence[str],
    *,
    size: int | None = None,
    pages: PageCache | None = None,
) -> tuple[Footer, dict[str, str]]:
    """Return the file's footer, and the values of those of the keys that its key-value metadata
    has. Takes and raises what `stripped_footer` does.

    Args:
        pages: keeps the footer of a local file from its second use on; None for no footer.
    """

def polynomials(values: pa.Array) -> bytes:
    """Return a number for each binary value: the sum of (byte + 1) times M to the power of the
    byte's position, counted from 1, modulo 2^64, with M = 0x9E3779B97F4A7C15. NULLs count as empty.

    Returns:
        Unsigned 64-bit integers, little-endian.

    Raises:
        ValueError: `values` is not binary.
    """

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

class Trees:
    """B+ trees of one column in many entries, to be searched by one call. Safe to use from several
    threads.

    Args:
        trees: The leaves of each.
    """

    def __init__(self, trees: Sequence[TreeLeaves]) -> None: ...
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

def read_leaf(body: bytes, rows: int, keys: int) -> Leaf:
    """Unpack a leaf, whose checksum the caller has checked; integers are in the machine's byte
    order.

    Args:
        rows: The number of rows that the tree's record of the leaf states.
        keys: The number of keys.

    Raises:
        ParquetReadError: the leaf contradicts itself.
    """

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
