"""Storage under a table: create exclusively, read ranges, list, delete.

A thin wrapper of `obstore` (Rust's object_store): one behaviour for local folders, memory (tests),
S3, Google Cloud Storage and Azure. It only adds URIs normalised as Hudi and Spark write them, the
service's own errors instead of library errors, counters, and listings and writes of local folders
(`storage.local`).
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import LocalStore, MemoryStore, ObjectStore, from_url

from hudi_index_service.errors import PermissionDenied, StorageFailed, StorageUnsupported
from hudi_index_service.storage.local import (
    files_below,
    files_in,
    folders_in,
    linked_folders,
    names_in,
    remove_empty_folders,
    unfinished_files,
    unlink,
    write_new,
    write_over,
)
from hudi_index_service.storage.throttle import RateLimit, shared_limit

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


# Options of the HTTP client rather than the store: obstore takes them separately.
_CLIENT_OPTION = re.compile(
    r"(?:(?:aws|azure|google)_)?(?P<name>allow_http|allow_invalid_certificates|connect_timeout"
    r"|http1_only|http2_only|pool_idle_timeout|pool_max_idle_per_host|proxy_ca_certificate"
    r"|proxy_excludes|proxy_url|timeout|user_agent)",
    re.IGNORECASE,
)

_REFUSALS = ("ermission denied", "Read-only file system", "AccessDenied")

_UNORDERED = "--x-s3"  # buckets of S3 Express, whose listings have no order

_DELETED_AT_ONCE = 1000  # S3's limit for one request


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as a listing shows it: path relative to the storage root, size in bytes, and the
    time of its last change in seconds since the epoch."""

    path: str
    size: int
    modified: float


@dataclass(slots=True)
class IoCount:
    """Requests made and bytes read since the storage was opened."""

    requests: int = 0
    bytes_read: int = 0


def normalise_uri(uri: str | Path) -> str:
    """The one spelling of a location: an absolute local path without scheme, or ``scheme://…``.

    ``file:/x``, ``file:///x`` and relative local paths become ``/…``; ``s3a://`` and ``s3n://``
    become ``s3://``; trailing slashes are removed. As with Hadoop's ``Path``, which Hudi and Spark
    use for tables, nothing is decoded: ``file:/a%20b`` is the folder ``a%20b``.

    Raises:
        StorageUnsupported: an unsupported scheme, such as ``hdfs://``.
    """
    text = str(uri)
    scheme = urlsplit(text).scheme if ":" in text.split("/", 1)[0] else ""
    if scheme in ("", "file"):
        path = text[len("file:") :] if scheme else text
        if scheme == "file" and path.startswith("//"):
            path = "/" + path.lstrip("/")
        return str(Path(path).absolute())
    if scheme == "memory":
        return text.rstrip("/")
    if scheme not in _REMOTE_SCHEMES:
        raise StorageUnsupported(f"{text}: the scheme {scheme}:// is not supported.")
    rest = text.split("://", 1)[1] if "://" in text else ""
    if not rest.strip("/"):
        raise StorageUnsupported(f"{text}: the location names no bucket or container.")
    return f"{_REMOTE_SCHEMES[scheme]}://{rest.rstrip('/')}"


@lru_cache(maxsize=64)
def _memory_store(name: str) -> MemoryStore:
    """One shared store per name, so that every opening of ``memory://name`` sees the same files."""
    return MemoryStore()


def _open_store(uri: str, options: Mapping[str, str]) -> ObjectStore:
    if uri.startswith("/"):
        return LocalStore(uri)
    if uri.startswith("memory://"):
        return _memory_store(uri)
    config: dict[str, Any] = {}
    client: Any = {}
    for key, value in options.items():
        match = _CLIENT_OPTION.fullmatch(key)
        if match:
            client[match["name"].lower()] = value
        else:
            config[key] = value
    with _panic_named(uri):
        # None rather than an empty mapping: it keeps the environment's options (AWS_ALLOW_HTTP).
        return from_url(uri, **config, client_options=client or None)


class Storage:
    """The files below one root, addressed by paths relative to it (``/`` between parts).

    Args:
        uri: The root: a local folder, ``memory://name``, ``s3://``, ``gs://`` or ``az://``.
        options: For remote stores: credentials, region, endpoint, and connection options
            (``allow_http``, ``timeout``, ``proxy_url``), under object_store's keys.

    Raises:
        StorageUnsupported: the scheme is not supported.
    """

    def __init__(self, uri: str | Path, options: Mapping[str, str] | None = None) -> None:
        self.uri = normalise_uri(uri)
        self.options = dict(options or {})
        self.io = IoCount()
        self.requests_per_second: float | None = None
        self._limit: RateLimit | None = None
        self._store: ObjectStore | None = None

    @property
    def store(self) -> ObjectStore:
        """The obstore handle, opened on first use (a local root may not exist before that)."""
        if self._store is None:
            try:
                self._store = _open_store(self.uri, self.options)
            except BaseError as error:
                raise StorageFailed(
                    f"{self.uri} cannot be opened: {_first_line(error)}."
                ) from error
        return self._store

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
        from another process. A request here is a call to obstore: one that sends several requests
        (a large upload's parts) counts once. Local files read without obstore, as by Arrow and the
        row reader, do not count.
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
        if not self.is_local:
            raise StorageUnsupported(f"{self.uri} is not a local folder.")
        return Path(self.uri, path)

    def root_exists(self) -> bool:
        """Whether anything is stored at the root."""
        if self.is_local:
            with self._errors_named(""):
                return Path(self.uri).is_dir()
        with self._errors_named(""):
            return any(obstore.list(self.store))  # its first chunk, not the whole bucket

    @contextmanager
    def _errors_named(self, path: str, *, writing: bool = False) -> Iterator[None]:
        """Converts obstore's errors to the service's. FileNotFoundError and FileExistsError stay
        Python's own, since callers handle them as ordinary outcomes."""
        if self._limit is not None:
            self._limit.take()
        self.io.requests += 1
        try:
            yield
        except (AlreadyExistsError, FileExistsError) as error:
            raise FileExistsError(f"{self.uri}/{path}") from error
        except FileNotFoundError as error:
            raise FileNotFoundError(_first_line(error)) from error
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise self._permission_denied(path, _first_line(error), writing) from error
        except NotSupportedError as error:
            raise StorageUnsupported(
                f"{self.uri}: the store lacks an operation that building needs "
                f"({_first_line(error)}).",
                remedy="Use a store with conditional writes (put-if-absent).",
            ) from error
        except BaseError as error:
            # Refusals of the local disk and of S3's deletion of several files at once.
            if any(sign in str(error) for sign in _REFUSALS):
                raise self._permission_denied(path, _first_line(error), writing) from error
            raise StorageFailed(f"{self.uri}/{path}: {_first_line(error)}.") from error
        except PermissionError as error:
            raise self._permission_denied(path, str(error), writing) from error
        except ValueError as error:
            raise StorageFailed(
                f"{self.uri}: {path!r} cannot be requested: {_first_line(error)}."
            ) from error

    @contextmanager
    def _missing_store_named(self) -> Iterator[None]:
        """Reports a missing store: for a write, "not found" means the store itself."""
        try:
            yield
        except FileNotFoundError as error:
            raise StorageFailed(
                f"{self.uri}: the store does not exist ({_first_line(error)}).",
                remedy="Check that the bucket or container exists and that the endpoint is right.",
            ) from error

    def _permission_denied(self, path: str, reason: str, writing: bool) -> PermissionDenied:
        place = f"{self.uri}/{path}".rstrip("/")
        if writing:
            return PermissionDenied(f"{place} cannot be written: {reason}.")
        return PermissionDenied(
            f"{place} cannot be read: {reason}.",
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
            with self._missing_store_named(), self._errors_named(path, writing=True):
                if self.is_local:
                    write_new(Path(self.uri), path, data)
                else:
                    obstore.put(self.store, path, data, mode="create")
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
        self._put(path, source)

    def replace(self, path: str, data: bytes) -> None:
        """Stores a file, replacing an older one. Only for heartbeats, never for data that an answer
        depends on (design, rule 5)."""
        self._put(path, data)

    def _put(self, path: str, data: bytes | Path) -> None:
        with self._missing_store_named(), self._errors_named(path, writing=True):
            if self.is_local:
                write_over(Path(self.uri), path, data)
            else:
                obstore.put(self.store, path, data)

    def read(self, path: str) -> bytes:
        """The whole file. Raises FileNotFoundError."""
        with self._errors_named(path):
            data = bytes(obstore.get(self.store, path).bytes())
        self.io.bytes_read += len(data)
        return data

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[Any]:
        """The bytes of [start, end) ranges, fetched concurrently and without any other byte. A
        remote store gets one request per range, but adjacent ranges share one.

        Returns buffers in the order of `ranges`.

        Raises:
            FileNotFoundError: the file does not exist.
            StorageFailed: the file ends before a range does.
        """
        if not ranges:
            return []
        with self._errors_named(path), _panic_named(f"{self.uri}/{path}"):
            buffers = list(
                obstore.get_ranges(
                    self.store,
                    path,
                    starts=[start for start, _ in ranges],
                    ends=[end for _, end in ranges],
                    coalesce=0,
                )
            )
        for buffer, (start, end) in zip(buffers, ranges, strict=True):
            if len(buffer) != end - start:
                raise StorageFailed(f"{self.uri}/{path} ends before byte {end}.")
        self.io.bytes_read += sum(end - start for start, end in ranges)
        return buffers

    def size(self, path: str) -> int:
        """The file's length in bytes. Raises FileNotFoundError."""
        with self._errors_named(path):
            return int(obstore.head(self.store, path)["size"])

    def modified(self, path: str) -> float:
        """When the file was last changed, in seconds since the epoch. Raises FileNotFoundError."""
        with self._errors_named(path):
            return float(obstore.head(self.store, path)["last_modified"].timestamp())

    def download(self, path: str, target: Path) -> None:
        """Copies the file to the local path `target`. Raises FileNotFoundError."""
        with self._errors_named(path), target.open("wb") as out:
            for chunk in obstore.get(self.store, path).stream():
                self.io.bytes_read += out.write(chunk)

    def files(self, prefix: str = "") -> list[StoredFile]:
        """All files below the folder `prefix`, at any depth; empty if there is no such folder."""
        if self.is_local:
            return self._local_files(files_below, prefix)
        with self._errors_named(prefix):
            return [
                _stored_file(meta)
                for chunk in obstore.list(self.store, prefix or None)
                for meta in chunk
            ]

    def files_outside(self, folder: str) -> list[StoredFile]:
        """All files at any depth except those below `folder`, a folder directly below the root.

        A remote store returns only the listing pages of these files, and one more: the listing
        skips the folder, which may hold many more files.
        """
        if self.uri.startswith("/") or _UNORDERED in self.uri:
            files = self.files_in("")
            for each in self.folders(""):
                if each != folder:
                    files.extend(self.files(each))
            return files
        with self._errors_named(""):
            before = self._files_until(f"{folder}/")
        with self._errors_named(""):
            after = obstore.list(self.store, offset=f"{folder}/~")  # after most of its files
            files = [_stored_file(meta) for chunk in after for meta in chunk]
        return [*before, *(each for each in files if not each.path.startswith(f"{folder}/"))]

    def _files_until(self, end: str) -> list[StoredFile]:
        files: list[StoredFile] = []
        for chunk in obstore.list(self.store):
            for meta in chunk:
                if meta["path"] >= end:
                    return files
                files.append(_stored_file(meta))
        return files

    def files_in(self, folder: str = "") -> list[StoredFile]:
        """The files directly in `folder`, without those of its sub-folders."""
        if self.is_local:
            return self._local_files(files_in, folder)
        with self._errors_named(folder):
            return [
                _stored_file(meta)
                for meta in obstore.list_with_delimiter(self.store, folder or None)["objects"]
            ]

    def names_in(self, folder: str) -> list[str]:
        """The names of the files directly in `folder`. A local folder is read without the files'
        attributes, which takes a tenth of the time of `files_in`."""
        if not self.is_local:
            return [file.path.rsplit("/", 1)[-1] for file in self.files_in(folder)]
        with self._local_errors_named(folder):
            return list(names_in(Path(self.uri), folder))

    def _local_files(
        self, listing: Callable[[Path, str], Iterable[tuple[str, os.stat_result]]], folder: str
    ) -> list[StoredFile]:
        with self._local_errors_named(folder):
            return [
                StoredFile(path, status.st_size, status.st_mtime)
                for path, status in listing(self._existing_root(), folder)
            ]

    def _existing_root(self) -> Path:
        """The local root. Raises StorageFailed if it does not exist when it is first used."""
        assert self.store, "opening it checks that the root exists"
        return Path(self.uri)

    @contextmanager
    def _local_errors_named(self, folder: str) -> Iterator[None]:
        with self._errors_named(folder):
            try:
                yield
            except PermissionError:
                raise
            except OSError as error:
                raise StorageFailed(
                    f"{self.uri}/{folder} cannot be listed: {error.strerror}."
                ) from error

    def folders(self, prefix: str = "") -> list[str]:
        """The folders directly below `prefix`, as paths relative to the root."""
        if self.is_local:
            with self._local_errors_named(prefix):
                return list(folders_in(self._existing_root(), prefix))
        with self._errors_named(prefix):
            return list(obstore.list_with_delimiter(self.store, prefix or None)["common_prefixes"])

    def delete(self, paths: Sequence[str]) -> None:
        """Deletes files; missing ones are no error. A remote store deletes many per request; on the
        local disk no symbolic link below the root is followed.

        Raises:
            PermissionDenied: no write access.
            StorageFailed: a path leads out of the root, or (local) through a link.
        """
        if self.is_local:
            for path in paths:
                with self._errors_named(path, writing=True):
                    unlink(Path(self.uri), path)
            return
        for start in range(0, len(paths), _DELETED_AT_ONCE):
            chunk = list(paths[start : start + _DELETED_AT_ONCE])
            try:
                with self._errors_named(chunk[0], writing=True):
                    obstore.delete(self.store, chunk)
            except FileNotFoundError:  # the store reports missing files, and may have stopped there
                self._delete_each(chunk)

    def _delete_each(self, paths: Sequence[str]) -> None:
        for path in paths:
            with suppress(FileNotFoundError), self._errors_named(path, writing=True):
                obstore.delete(self.store, path)

    def unfinished(self, prefix: str) -> list[StoredFile]:
        """The leftovers of killed writers below `prefix` of a local root, which no other listing
        shows. Empty for a remote store: its listings omit the parts of an unfinished upload, which
        the bucket's own lifecycle rule deletes."""
        if not self.is_local:
            return []
        with self._errors_named(prefix):
            return [
                StoredFile(path, status.st_size, status.st_mtime)
                for path, status in unfinished_files(Path(self.uri), prefix)
            ]

    def linked_folders(self, prefix: str) -> list[str]:
        """The symbolic links to folders below `prefix`, or on the path to it, as paths relative to
        the root; only a local root has any."""
        return linked_folders(Path(self.uri), prefix) if self.is_local else []

    def delete_empty_folders(self, prefix: str) -> int:
        """Removes empty folders below and including `prefix` on a local root; object stores have
        none. Returns how many."""
        return remove_empty_folders(Path(self.uri), prefix) if self.is_local else 0


def _stored_file(meta: Mapping[str, Any]) -> StoredFile:
    return StoredFile(meta["path"], meta["size"], meta["last_modified"].timestamp())


@contextmanager
def _panic_named(path: str) -> Iterator[None]:
    """Converts a panic of obstore's to an error: get_ranges panics if a file is too short, opening
    a store does for some options."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise StorageFailed(f"{path}: the store's client failed ({_first_line(error)}).") from error


def _first_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0].rstrip(". ")
