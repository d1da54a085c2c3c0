"""Opens base files with Arrow or the native row reader; computes the footer's digest.

Files that cannot be read raise the service's errors: no read access, damaged, encrypted.
"""

import hashlib
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_index_service.errors import NeedsSpark, PermissionDenied, StorageFailed
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
