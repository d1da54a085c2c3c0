"""Storage under a table: create exclusively, read ranges, list, delete.

One behavior for local folders (`storage.disk`), HDFS (`storage.hdfs`), object stores and memory
(`storage.remote`): URIs normalized as Hudi and Spark write them, errors that name the place and the
remedy, counters, and a limit on the request rate.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from errno import EDQUOT, ENOSPC
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from hudi_index_service.errors import (
    ConfigInvalid,
    PermissionDenied,
    StorageFailed,
    StorageUnsupported,
)
from hudi_index_service.storage.contract import Files, StoredFile
from hudi_index_service.storage.disk import Disk
from hudi_index_service.storage.waiting import RateLimit, shared_limit
from hudi_index_service.wording import first_line, reason

__all__ = ["IoCount", "Operation", "Storage", "StoredFile", "normalize_uri", "requests_made"]

_FULL = (ENOSPC, EDQUOT)
"""A disk is full, or a user's share of it."""

_REMOTE_SCHEMES = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "gcs": "gs",
    "az": "az",
    "abfs": "abfs",
    "abfss": "abfss",
}

_HDFS = "hdfs://"


Operation = Literal["read", "list", "status", "write", "delete"]
"""What a request asks of a store."""

# Without a lock, which a fork might leave taken for ever: nothing depends on the last request.
_requests: dict[Operation, int] = dict.fromkeys(get_args(Operation), 0)


def requests_made() -> Mapping[Operation, int]:
    """The requests that this process made of all stores so far, by operation; one for each call of
    a `Storage`, as `Storage.throttled` counts them."""
    return dict(_requests)


def count_requests(made: Mapping[str, int]) -> None:
    """Counts requests that another process made for this one, by operation."""
    for operation in _requests:
        _requests[operation] += made.get(operation, 0)


@dataclass(slots=True)
class IoCount:
    """Requests made and bytes read since the storage was opened."""

    requests: int = 0
    bytes_read: int = 0


def normalize_uri(uri: str | Path) -> str:
    """The one spelling of a location: an absolute local path without scheme, or ``scheme://…``.

    ``file:/x``, ``file:///x`` and relative local paths become ``/…``; ``s3a://`` and ``s3n://``
    become ``s3://``. ``.``, ``..``, doubled and trailing slashes are resolved: of a local path by
    the operating system, with its links and ``~``; of a remote one as by Hadoop's ``Path``, which
    Hudi and Spark use for tables. As there, nothing is decoded: ``file:/a%20b`` is the folder
    ``a%20b``. ``hdfs:///x`` and ``hdfs:/x`` are in the name service that Hadoop's configuration
    names as ``fs.defaultFS``.

    Raises:
        StorageUnsupported: an unsupported scheme, such as ``oss://``; a ``..`` above the root of a
            store; a NUL character.
    """
    text = str(uri)
    if "\0" in text:
        raise StorageUnsupported(f"{text!r} is not a path: it contains a NUL character.")
    scheme = urlsplit(text).scheme if ":" in text.split("/", 1)[0] else ""
    if scheme in ("", "file"):
        path = text[len("file:") :] if scheme else text
        if scheme == "file" and path.startswith("//"):
            path = "/" + path.lstrip("/")
        # Unlike Path.expanduser, this leaves ~x as it is if there is no user x.
        at_home = path if scheme else os.path.expanduser(path)  # noqa: PTH111
        resolved = os.path.realpath(at_home)
        return "/" + resolved.lstrip("/")  # POSIX lets // at the start be something else
    if scheme == "memory":
        return text.rstrip("/")
    if scheme == "hdfs":
        return _normal_hdfs(text)
    if scheme not in _REMOTE_SCHEMES:
        raise StorageUnsupported(f"{text}: the scheme {scheme}:// is not supported.")
    rest = text.split("://", 1)[1] if "://" in text else ""
    if not rest.strip("/"):
        raise StorageUnsupported(f"{text}: the location names no bucket or container.")
    bucket, _, folder = rest.partition("/")
    return "/".join([f"{_REMOTE_SCHEMES[scheme]}://{bucket}", *_folders(text, folder)])


def _normal_hdfs(text: str) -> str:
    rest = text.removeprefix("hdfs:")
    service, _, folder = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest)
    folders = _folders(text, folder)
    if not folders:
        raise StorageUnsupported(f"{text}: the location names no folder.")
    return "/".join([f"{_HDFS}{service}", *folders])


def _folders(text: str, path: str) -> list[str]:
    """The folders on the path of a remote location `text`, as Hadoop's ``Path`` resolves it."""
    folders: list[str] = []
    for each in path.split("/"):
        if each == ".." and not folders:
            raise StorageUnsupported(f"{text}: .. leads above the root of the store.")
        if each == "..":
            folders.pop()
        elif each not in ("", "."):
            folders.append(each)
    return folders


class Storage:
    """The files below one root, addressed by paths relative to it (``/`` between parts).

    Args:
        uri: The root: a local folder, ``memory://name``, ``s3://``, ``gs://``, ``az://`` or
            ``hdfs://``.
        options: For object stores: credentials, region, endpoint, and connection options
            (``allow_http``, ``timeout``, ``proxy_url``), under object_store's keys. For HDFS: see
            `hudi_index_service.storage.hdfs`.

    Raises:
        StorageUnsupported: the scheme is not supported.
        ConfigInvalid: `options` is not a mapping.
    """

    def __init__(self, uri: str | Path, options: Mapping[str, str] | None = None) -> None:
        if options is not None and not isinstance(options, Mapping):
            raise ConfigInvalid(
                f"storage_options is {type(options).__name__}, not a dictionary.",
                remedy='Write storage_options={"region": "eu-west-1"}.',
            )
        self.uri = normalize_uri(uri)
        self.options = dict(options or {})
        self.io = IoCount()
        self.requests_per_second: float | None = None
        self._limit: RateLimit | None = None
        self._opened_files: Files | None = None

    @property
    def _files(self) -> Files:
        """Where the files are, opened on first use."""
        if self._opened_files is None:
            self._opened_files = self._open()
        return self._opened_files

    def _open(self) -> Files:
        # A client takes time to import, which a process with local tables saves.
        if self.uri.startswith("/"):
            return Disk(self.uri)
        if self.uri.startswith(_HDFS):
            try:
                from hudi_index_service.storage.hdfs import Hdfs
            except ModuleNotFoundError as error:
                raise StorageUnsupported(
                    f"{self.uri}: the package {error.name} is not installed.",
                    remedy="pip install 'hudi-index-service[hdfs]', also on Spark's executors.",
                ) from error
            return Hdfs(self.uri, self.options)
        from hudi_index_service.storage.remote import RemoteStore

        return RemoteStore(self.uri, self.options)

    def __getstate__(self) -> dict[str, Any]:
        # Only the address is sent to Spark tasks; each process opens its own handle.
        return {
            "uri": self.uri,
            "options": self.options,
            "requests_per_second": self.requests_per_second,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["uri"], state["options"])  # type: ignore[misc]
        self._limit_to(state["requests_per_second"])

    def throttled(self, requests_per_second: float | None) -> "Storage":
        """The same files with a maximum request rate; None for no limit.

        All storages of one process with the same root and rate share the limit, including copies
        from another process. A request here is a call of this object: one that sends several
        requests (a large upload's parts) counts once. Local files that Arrow and the row reader
        read do not count.
        """
        other = copy(self)
        other._limit_to(requests_per_second)
        return other

    def _limit_to(self, requests_per_second: float | None) -> None:
        self.requests_per_second = requests_per_second
        if requests_per_second is not None:
            self._limit = shared_limit(self.uri, requests_per_second)

    @property
    def is_local(self) -> bool:
        """Whether files can also be opened by local path (see `local_path`)."""
        return self.uri.startswith("/")

    def local_path(self, path: str) -> Path:
        """The file's path on the local disk; requires `is_local`."""
        return Path(self.local_name(path))

    def local_name(self, path: str) -> str:
        """The same as text, which takes a tenth of the time for thousands of files."""
        if not self.is_local:
            raise StorageUnsupported(f"{self.uri} is not a local folder.")
        return f"{self.uri}/{path}"

    def root_exists(self) -> bool:
        """Whether anything is stored at the root."""
        with self._request("", "status"):
            return self._files.exists()

    @contextmanager
    def _request(self, path: str, operation: Operation) -> Iterator[None]:
        """Counts a request, delays it if the rate is limited, and names the place of errors.
        FileNotFoundError and FileExistsError stay Python's own, since callers handle them as
        ordinary outcomes."""
        if self._limit is not None:
            self._limit.take()
        self.io.requests += 1
        _requests[operation] += 1
        try:
            yield
        except FileExistsError as error:
            raise FileExistsError(f"{self.uri}/{path}") from error
        except (IsADirectoryError, NotADirectoryError) as error:  # no file of that path
            raise FileNotFoundError(f"{self.uri}/{path}") from error
        except FileNotFoundError:
            raise
        except PermissionError as error:
            raise self._permission_denied(path, reason(error), operation) from error
        except OSError as error:
            raise StorageFailed(
                f"{self.uri}/{path}: {reason(error)}.",
                remedy="Free space on that disk, then try again." if error.errno in _FULL else None,
            ) from error
        except ValueError as error:
            raise StorageFailed(
                f"{self.uri}: {path!r} cannot be requested: {first_line(error)}."
            ) from error

    def _permission_denied(self, path: str, why: str, operation: Operation) -> PermissionDenied:
        place = f"{self.uri}/{path}".rstrip("/")
        if operation in ("write", "delete"):
            return PermissionDenied(f"{place} cannot be written: {why}.")
        return PermissionDenied(
            f"{place} cannot be read: {why}.",
            remedy=f"Give this user read access to {place} and its parent folders.",
        )

    def create(self, path: str, data: bytes | Path) -> None:
        """Stores a new file; never replaces one.

        A remote store's client repeats a request whose response was lost, and may then find its own
        file. The same bytes are therefore no conflict.

        Raises:
            FileExistsError: the path is taken; the existing file is unchanged.
            PermissionDenied: no write access.
            StorageFailed: the bucket or container does not exist, the path leads through a symbolic
                link of the local disk, or the store fails otherwise.
            StorageUnsupported: the store has no put-if-absent.
        """
        try:
            self._put(path, data, new=True)
        except FileExistsError:
            if self.is_local or not isinstance(data, bytes) or not self._holds(path, data):
                raise

    def _holds(self, path: str, data: bytes) -> bool:
        try:
            return self.read(path) == data
        except FileNotFoundError:  # deleted meanwhile
            return False

    def upload(self, path: str, source: bytes | Path) -> None:
        """Stores bytes, or a large local file, in parts if the store supports them, under a name
        that must be unique: uploads in parts have no put-if-absent."""
        self._put(path, source, new=False)

    def replace(self, path: str, data: bytes) -> None:
        """Stores a file, replacing an older one. Only for heartbeats, never for data that an answer
        depends on (design, rule 5)."""
        self._put(path, data, new=False)

    def _put(self, path: str, data: bytes | Path, *, new: bool) -> None:
        try:
            with self._request(path, "write"):
                self._files.put(path, data, new=new)
        except FileNotFoundError as error:  # for a write, this means the store itself
            raise StorageFailed(
                f"{self.uri}: the store does not exist ({error}).",
                remedy="Check that the bucket or container exists and that the endpoint is right.",
            ) from error

    def read(self, path: str) -> bytes:
        """The whole file. Raises FileNotFoundError."""
        with self._request(path, "read"):
            data = self._files.read(path)
        self.io.bytes_read += len(data)
        return data

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[Any]:
        """The bytes of [start, end) ranges, without any other byte. A remote store gets one request
        per range, many at once; in an object store adjacent ranges share one.

        Returns buffers in the order of `ranges`.

        Raises:
            FileNotFoundError: the file does not exist.
            StorageFailed: the file ends before a range does.
        """
        if not ranges:
            return []
        with self._request(path, "read"):
            buffers = list(self._files.read_ranges(path, ranges))
        for buffer, (start, end) in zip(buffers, ranges, strict=True):
            if len(buffer) != end - start:
                raise StorageFailed(f"{self.uri}/{path} ends before byte {end}.")
        self.io.bytes_read += sum(end - start for start, end in ranges)
        return buffers

    def status(self, path: str) -> StoredFile:
        """The file as a listing shows it. Raises FileNotFoundError."""
        with self._request(path, "status"):
            return self._files.status(path)

    def size(self, path: str) -> int:
        """The file's length in bytes. Raises FileNotFoundError."""
        return self.status(path).size

    def download(self, path: str, target: Path) -> None:
        """Copies the file to the local path `target`. Raises FileNotFoundError."""
        with self._request(path, "read"):
            try:
                self.io.bytes_read += self._files.download(path, target)
            except OSError as error:
                if error.errno not in _FULL:
                    raise
                raise StorageFailed(
                    f"{target} cannot be written: {error.strerror}.",
                    remedy="Free space on that disk, or set another cache_folder.",
                ) from error

    def files(self, prefix: str = "") -> list[StoredFile]:
        """All files below the folder `prefix`, at any depth; empty if there is no such folder."""
        with self._request(prefix, "list"):
            return self._files.below(prefix)

    def files_outside(self, folder: str, *, flat: bool = False) -> list[StoredFile]:
        """All files at any depth except those below `folder`, a folder directly below the root.

        An object store returns only the listing pages of these files, and one more: two listings,
        before and after the folder, which may hold many more files, run in parallel.

        Args:
            flat: Whether the files are expected in the root itself. An object store then returns
                the pages of these alone, unless there are other folders: each takes a listing.
        """
        if flat or not self._files.lists_in_order:
            with self._request("", "list"):
                files, folders = self._files.level("")
            below = (self.files(each) for each in folders if each != folder)
            return list(chain(files, *below))
        with ThreadPoolExecutor(1, "list") as thread:
            before = thread.submit(self._files_before, f"{folder}/")
            with self._request("", "list"):
                after = self._files.after(f"{folder}/~")  # after most of its files
            rest = (each for each in after if not each.path.startswith(f"{folder}/"))
            return [*before.result(), *rest]

    def _files_before(self, end: str) -> list[StoredFile]:
        with self._request("", "list"):
            return self._files.before(end)

    def files_in(self, folder: str = "") -> list[StoredFile]:
        """The files directly in `folder`, without those of its sub-folders."""
        with self._request(folder, "list"):
            return self._files.level(folder)[0]

    def names_in(self, folder: str) -> list[str]:
        """The names of the files directly in `folder`. A local folder is read without the files'
        attributes, which takes a tenth of the time of `files_in`."""
        with self._request(folder, "list"):
            return self._files.names(folder)

    def folders(self, prefix: str = "") -> list[str]:
        """The folders directly below `prefix`, as paths relative to the root."""
        with self._request(prefix, "list"):
            return self._files.level(prefix)[1]

    def delete(self, paths: Sequence[str]) -> None:
        """Deletes files; missing ones are no error. A remote store deletes many per request; on the
        local disk no symbolic link below the root is followed.

        Raises:
            PermissionDenied: no write access.
            StorageFailed: a path leads out of the root, or (local) through a link.
        """
        at_once = self._files.deleted_at_once
        for start in range(0, len(paths), at_once):
            some = paths[start : start + at_once]
            try:
                self._delete(some)
            except FileNotFoundError:
                for path in some:
                    with suppress(FileNotFoundError):
                        self._delete([path])

    def _delete(self, paths: Sequence[str]) -> None:
        with self._request(paths[0], "delete"):
            self._files.delete(paths)

    def unfinished(self, prefix: str) -> list[StoredFile]:
        """The leftovers of killed writers below `prefix`, which no other listing shows. Empty for
        an object store: its listings omit the parts of an unfinished upload, which the bucket's
        own lifecycle rule deletes."""
        with self._request(prefix, "list"):
            return self._files.unfinished(prefix)

    def linked_folders(self, prefix: str) -> list[str]:
        """The symbolic links to folders below `prefix`, or on the path to it, as paths relative to
        the root; only a local root has any."""
        return self._files.linked_folders(prefix)

    def delete_empty_folders(self, prefix: str) -> int:
        """Removes empty folders below and including `prefix`; object stores have none. Returns how
        many."""
        return self._files.delete_empty_folders(prefix)
