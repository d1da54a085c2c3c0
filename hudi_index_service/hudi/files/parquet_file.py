"""Opens base files with Arrow or the native row reader; reads some rows in batches; what footers
say: a digest, and statistics.

Files that cannot be read raise the service's errors: no read access, damaged, encrypted. Batches
are bounded in rows and in bytes. Arrow decodes a row group from its beginning, so rows before the
requested ones are decoded and discarded; rows after them are not. Arrow takes a number of rows, not
of bytes. The bytes per row are measured on the batches read, since repeated values are much smaller
in the file.
"""

import hashlib
import io
import re
from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_index_service.errors import NeedsSpark, PermissionDenied, StorageFailed
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.storage.store import Storage

if TYPE_CHECKING:
    # Opening a table does not need the native row reader, nor reading by index Arrow's reader.
    import pyarrow.parquet as pq
    from hudi_index_parquet import Fetch

_LOCAL_BUFFER = 2**20  # bytes read at once of each column
_TAIL = 2**20  # bytes read at once from a remote file's end: the usual maximum of Hudi's footers
_FOOTER_TAIL = 8  # four bytes of length, then the magic
_SIGNATURE = 28  # bytes, after a plain footer in an encrypted file
_ENCRYPTED = re.compile("(?i)encrypt|decrypt")  # in Arrow's message

BATCH_BYTES = 16 * 2**20
"""Approximate maximum bytes of a batch; after a larger batch the next ones are smaller."""

FIRST_ROWS = 4096
"""Rows of the first batch, by which the bytes per row are measured."""

_FEWEST_ROWS = 16

_SAMPLED_FILES = 4  # largest base files read; files of one writer are similar


def open_parquet(storage: Storage, path: str, size: int | None = None) -> "pq.ParquetFile":
    """Opens a base file for column reading. The caller closes it.

    INT96 timestamps are returned in microseconds: nanoseconds overflow for dates that Spark writes.
    A local file is read in small pieces. For a remote file, the requested columns of a row group
    are fetched together, to save requests, and held in memory; a small file is fetched whole.

    Args:
        size: The file's length in bytes if known; otherwise a remote store takes a request for it.

    Raises:
        FileNotFoundError: Hudi has cleaned it.
        PermissionDenied: no read access.
        StorageFailed: the file is not readable Parquet.
        NeedsSpark: the file is encrypted.
    """
    import pyarrow.parquet as pq

    with damage_named(path):
        if storage.is_local:
            raw_file: io.RawIOBase | pa.NativeFile = pa.OSFile(str(storage.local_path(path)))
            source = raw_file
        else:
            raw_file = _RemoteFile(storage, path, size)
            source = pa.PythonFile(raw_file, mode="r")
        file = pq.ParquetFile(
            source,
            coerce_int96_timestamp_unit="us",
            pre_buffer=not storage.is_local,
            buffer_size=_LOCAL_BUFFER if storage.is_local else 0,
            page_checksum_verification=True,
        )
        _refuse_signed_footer(file, raw_file, path)
        return file


def _refuse_signed_footer(
    file: "pq.ParquetFile", raw_file: "io.RawIOBase | pa.NativeFile", path: str
) -> None:
    """Refuses a file with encrypted columns and a plain footer, which a signature follows. Arrow
    would end the process on access to such a column."""
    raw_file.seek(-_FOOTER_TAIL, io.SEEK_END)
    tail = raw_file.read(_FOOTER_TAIL)
    if int.from_bytes(tail[:4], "little") == file.metadata.serialized_size + _SIGNATURE:
        file.close()
        raise encrypted(path)


class _RemoteFile(io.RawIOBase):
    """A stored file for Arrow, with one request per read, since Arrow merges near ranges. The first
    read, at the file's end, fetches a larger tail, which costs no further request."""

    def __init__(self, storage: Storage, path: str, size: int | None) -> None:
        self._storage = storage
        self._path = path
        self._size = storage.size(path) if size is None else size
        self._position = 0
        self._tail = b""  # the last bytes of the file, once they have been read

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._size, self._position + size)
        if end <= self._position:
            return b""
        start, self._position = self._position, end
        tail_start = self._size - len(self._tail)
        if start < tail_start and end == self._size:
            tail_start = min(start, max(0, self._size - _TAIL))
            self._tail = self._bytes(tail_start, end)
        if start >= tail_start:
            return self._tail[start - tail_start : end - tail_start]
        return self._bytes(start, end)

    def _bytes(self, start: int, end: int) -> bytes:
        (content,) = self._storage.read_ranges(self._path, [(start, end)])
        return bytes(content)


@contextmanager
def damage_named(path: str) -> Iterator[None]:
    """Names the base file in Arrow's errors. FileNotFoundError passes through. A file that may be
    sound but that Arrow does not support is left to Spark."""
    try:
        with refusals_named(path):
            yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        if _ENCRYPTED.search(str(error)):
            raise encrypted(path) from error
        if isinstance(error, pa.ArrowNotImplementedError):
            raise NeedsSpark(f"{path} cannot be read here: {str(error).rstrip('.')}.") from error
        raise unreadable(path, error) from error


def unreadable(path: str, error: Exception) -> StorageFailed:
    """The error for a base file that is damaged, or that the disk or store fails to return."""
    return StorageFailed(
        f"{path} is not a readable Parquet file: {str(error).rstrip('.')}.",
        remedy="The table itself is damaged; check whether Spark can read this file.",
    )


@contextmanager
def refusals_named(path: str) -> Iterator[None]:
    """Names the base file that the user has no permission to read."""
    try:
        yield
    except PermissionError as error:
        raise PermissionDenied(
            f"{path} cannot be read: {error.strerror}.",
            remedy="Grant this user read access to the table's files.",
        ) from error


def encrypted(path: str) -> NeedsSpark:
    """The error for a base file that is wholly or partly encrypted."""
    return NeedsSpark(f"{path} is encrypted: only Spark, with its keys, reads it.")


def row_source(storage: Storage, path: str) -> "str | Fetch":
    """The base file as a source for the native row reader: a local path, or a fetch function."""
    if storage.is_local:
        return str(storage.local_path(path))
    return partial(storage.read_ranges, path)


def is_broken_text(error: Exception) -> bool:
    """Whether the native row reader refused text that is not UTF-8. Arrow accepts it, so
    `read_columns` reads such rows."""
    return "UTF-8" in str(error)


def footer_sha256(storage: Storage, path: str, size: int) -> str:
    """SHA-256 of the file's footer (metadata, length and magic), hexadecimal."""
    (tail,) = storage.read_ranges(path, [(size - _FOOTER_TAIL, size)])
    length = int.from_bytes(memoryview(tail)[:4], "little") + _FOOTER_TAIL
    (footer,) = storage.read_ranges(path, [(max(0, size - length), size)])
    return hashlib.sha256(memoryview(footer)).hexdigest()


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
    at_once = 0
    for number, group in enumerate(row_group_rows(file)):
        start, stop = max(rows.start, group.start), min(rows.stop, group.stop)
        if start < stop and (row_groups is None or number in row_groups):
            own = range(start - group.start, stop - group.start)
            at_once = yield from _of_row_group(file, number, columns, own, batch_rows, at_once)


def row_group_rows(file: "pq.ParquetFile") -> list[range]:
    """The positions of the rows of each row group."""
    metadata = file.metadata
    counts = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    return [range(*ends) for ends in pairwise(accumulate(counts, initial=0))]


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


@dataclass(slots=True)
class FooterColumn:
    """A column in some base files. Byte counts exclude page headers.

    Attributes:
        bytes, plain_bytes: Compressed and uncompressed bytes.
        pages: Number of data pages; 0 if the files do not record it.
        codecs: Codecs in upper case, as Parquet names them.
    """

    bytes: int = 0
    plain_bytes: int = 0
    pages: int = 0
    codecs: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Footers:
    """Statistics of some base files, as a sample of all.

    Attributes:
        files: The sampled files.
        rows: Number of rows in them.
        columns: Statistics by root column.
        share: Fraction of all base files' bytes that is in the sample.
    """

    files: tuple[BaseFile, ...]
    rows: int
    columns: dict[str, FooterColumn]
    share: float

    def bytes(self, columns: Iterable[str]) -> float:
        """Compressed bytes of some columns in all base files, estimated from the sample."""
        sampled_bytes = sum(self.columns[each].bytes for each in columns if each in self.columns)
        return sampled_bytes / self.share if self.share else 0.0

    @property
    def all_rows(self) -> float:
        """Estimated number of rows in all base files."""
        return self.rows / self.share if self.share else 0.0


def footers(storage: Storage, base_files: Sequence[BaseFile]) -> Footers:
    """Reads the footers of the largest base files.

    Raises:
        FileNotFoundError, PermissionDenied, StorageFailed, NeedsSpark: one cannot be read.
    """
    largest = sorted(base_files, key=lambda each: (-each.size, each.path))[:_SAMPLED_FILES]
    columns: defaultdict[str, FooterColumn] = defaultdict(FooterColumn)
    rows = 0
    for base_file in largest:
        rows += _add(storage, base_file, columns)
    total_bytes = sum(each.size for each in base_files)
    share = sum(each.size for each in largest) / total_bytes if total_bytes else 0.0
    return Footers(tuple(largest), rows, dict(columns), share)


def _add(storage: Storage, base_file: BaseFile, columns: defaultdict[str, FooterColumn]) -> int:
    from hudi_index_parquet import Footer, ParquetReadError, stripped_footer

    with open_parquet(storage, base_file.path, base_file.size) as file:
        metadata = file.metadata
        for group in range(metadata.num_row_groups):
            row_group = metadata.row_group(group)
            for number in range(metadata.num_columns):
                chunk = row_group.column(number)
                column = columns[chunk.path_in_schema.split(".")[0]]
                column.bytes += chunk.total_compressed_size
                column.plain_bytes += chunk.total_uncompressed_size
                column.codecs.add(chunk.compression)
        names = list(file.schema_arrow.names)
        rows = int(metadata.num_rows)
    try:
        footer = Footer(stripped_footer(row_source(storage, base_file.path), size=base_file.size))
        for name in names:
            columns[name].pages += len(footer.page_starts([name]))
    except ParquetReadError:  # a file without page locations: its pages are not counted
        pass
    return rows
