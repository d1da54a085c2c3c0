"""Storage under a table: create exclusively, read ranges, list, delete.

A thin skin over `obstore` (Rust's object_store): one behaviour for local folders, memory (tests),
S3, Google Cloud Storage and Azure. It adds what the service needs and no more: URIs normalised as
Hudi and Spark write them, library errors turned into the service's own, and counters.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
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
from hudi_index_service.local_folder import (
    linked_folders,
    remove_empty_folders,
    unfinished_files,
    unlink,
    write_new,
    write_over,
)
from hudi_index_service.rate_limit import RateLimit, shared_limit

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


# What is the HTTP client's rather than the store's: obstore takes such options apart.
_CLIENT_OPTION = re.compile(
    r"(?:(?:aws|azure|google)_)?(?P<name>allow_http|allow_invalid_certificates|connect_timeout"
    r"|http1_only|http2_only|pool_idle_timeout|pool_max_idle_per_host|proxy_ca_certificate"
    r"|proxy_excludes|proxy_url|timeout|user_agent)",
    re.IGNORECASE,
)

_REFUSALS = ("ermission denied", "Read-only file system", "AccessDenied")

_UNORDERED = "--x-s3"  # buckets of S3 Express, whose listings have no order

_DELETED_AT_ONCE = 1000  # what S3 takes in one request


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as a listing shows it: path relative to the storage root, size in bytes, and the
    time of its last change in seconds since the epoch."""

    path: str
    size: int
    modified: float


@dataclass(slots=True)
class IoCount:
    """How many requests were made, and how many bytes came back, since the storage was opened."""

    requests: int = 0
    bytes_read: int = 0


def normalise_uri(uri: str | Path) -> str:
    """The one spelling of a location: an absolute local path without scheme, or ``scheme://…``.

    ``file:/x``, ``file:///x`` and relative local paths become ``/…``; ``s3a://`` and ``s3n://``
    become ``s3://``; trailing slashes go. As with Hadoop's ``Path``, which Hudi and Spark name
    tables by, nothing is decoded: ``file:/a%20b`` is the folder ``a%20b``.

    Raises:
        StorageUnsupported: a scheme that is not served, such as ``hdfs://``.
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
    """One shared store a name, so that two openings of ``memory://name`` see the same files."""
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
        # None rather than nothing: that leaves what the environment says (AWS_ALLOW_HTTP).
        return from_url(uri, **config, client_options=client or None)


class Storage:
    """The files below one root, addressed by paths relative to it (``/`` between parts).

    Args:
        uri: The root: a local folder, ``memory://name``, ``s3://``, ``gs://`` or ``az://``.
        options: For remote stores: credentials, region, endpoint, and what concerns the
            connection (``allow_http``, ``timeout``, ``proxy_url``), under object_store's keys.

    Raises:
        StorageUnsupported: the scheme is not served.
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
        """The obstore handle, opened at first use (a local root may not exist before that)."""
        if self._store is None:
            try:
                self._store = _open_store(self.uri, self.options)
            except BaseError as error:
                raise StorageFailed(
                    f"{self.uri} cannot be opened: {_first_line(error)}."
                ) from error
        return self._store

    def __getstate__(self) -> dict[str, Any]:
        # Crosses to Spark tasks as its address; each process opens its own handle.
        return {
            "uri": self.uri,
            "options": self.options,
            "requests_per_second": self.requests_per_second,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["uri"], state["options"])  # type: ignore[misc]
        self._limit_to(state["requests_per_second"])

    def throttled(self, requests_per_second: float | None) -> "Storage":
        """The same files, asked for at that rate at most; None for no limit.

        All storages of one process with the same root and rate share it, copies that came from
        another process among them. A request here is a call to obstore: what that sends as several
        (a large upload's parts) counts as one, and files of a local disk that are read past it, as
        Arrow and the row reader do, do not count.
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
        """The file's path on the local disk; only where `is_local`."""
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
        """Turns obstore's errors into the service's; FileNotFoundError and FileExistsError pass
        as Python's own, since callers handle them as ordinary outcomes."""
        if self._limit is not None:
            self._limit.take()
        self.io.requests += 1
        try:
            yield
        except (AlreadyExistsError, FileExistsError) as error:
            raise FileExistsError(f"{self.uri}/{path}") from error
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise self._refused(path, _first_line(error), writing) from error
        except NotSupportedError as error:
            raise StorageUnsupported(
                f"{self.uri}: the store lacks an operation that building needs "
                f"({_first_line(error)}).",
                remedy="Use a store with conditional writes (put-if-absent).",
            ) from error
        except BaseError as error:
            # The local disk's refusals, and those of S3's deletion of several files at once.
            if any(sign in str(error) for sign in _REFUSALS):
                raise self._refused(path, _first_line(error), writing) from error
            raise StorageFailed(f"{self.uri}/{path}: {_first_line(error)}.") from error
        except PermissionError as error:
            raise self._refused(path, str(error), writing) from error
        except ValueError as error:
            raise StorageFailed(
                f"{self.uri}: {path!r} cannot be asked for: {_first_line(error)}."
            ) from error

    @contextmanager
    def _missing_store_named(self) -> Iterator[None]:
        """Of a request that writes: what is not there then is the store itself."""
        try:
            yield
        except FileNotFoundError as error:
            raise StorageFailed(
                f"{self.uri}: the store says that it is not there ({_first_line(error)}).",
                remedy="Check that the bucket or container exists, and its endpoint.",
            ) from error

    def _refused(self, path: str, why: str, writing: bool) -> PermissionDenied:
        place = f"{self.uri}/{path}".rstrip("/")
        if writing:
            return PermissionDenied(f"{place} cannot be written: {why}.")
        return PermissionDenied(
            f"{place} cannot be read: {why}.",
            remedy=f"Give this user read access to {place}, and to the folders on the way to it.",
        )

    def create(self, path: str, data: bytes | Path) -> None:
        """Stores a new file; never replaces one.

        A remote store's client repeats a request whose answer was lost, and then finds what it
        has written itself: the very same bytes, which are no conflict.

        Raises:
            FileExistsError: the path is taken; what is stored there stays as it is.
            PermissionDenied: no write access.
            StorageFailed: there is no such bucket or container, the path leads through a symbolic
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

    def upload(self, path: str, source: Path) -> None:
        """Stores a large local file, in parts where the store takes parts, under a name that
        nobody else can have chosen: there is no put-if-absent for parts."""
        self._put(path, source)

    def replace(self, path: str, data: bytes) -> None:
        """Stores a file, replacing an older one: for heartbeats alone, never for what an answer
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
        """The bytes of [start, end) ranges, fetched at once: of a remote store each by a request of
        its own, adjacent ones together; no byte that was not asked for.

        Returns buffers in the order of `ranges`.

        Raises:
            FileNotFoundError: there is no such file.
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
        with self._errors_named(prefix):
            return [
                _stored_file(meta)
                for chunk in obstore.list(self.store, prefix or None)
                for meta in chunk
            ]

    def files_outside(self, folder: str) -> list[StoredFile]:
        """All files at any depth but those below `folder`, a folder directly below the root.

        A remote store is asked for as many pages of its listing as these files make, and one: what
        lies in the folder, which may be much more, is jumped over.
        """
        if self.uri.startswith("/") or _UNORDERED in self.uri:
            found = self.files_in("")
            for each in self.folders(""):
                if each != folder:
                    found.extend(self.files(each))
            return found
        with self._errors_named(""):
            before = self._listed_until(f"{folder}/")
        with self._errors_named(""):
            after = obstore.list(self.store, offset=f"{folder}/~")  # behind most that is in it
            found = [_stored_file(meta) for chunk in after for meta in chunk]
        return [*before, *(each for each in found if not each.path.startswith(f"{folder}/"))]

    def _listed_until(self, end: str) -> list[StoredFile]:
        found: list[StoredFile] = []
        for chunk in obstore.list(self.store):
            for meta in chunk:
                if meta["path"] >= end:
                    return found
                found.append(_stored_file(meta))
        return found

    def files_in(self, folder: str = "") -> list[StoredFile]:
        """The files directly in `folder`, without those of its sub-folders."""
        with self._errors_named(folder):
            return [
                _stored_file(meta)
                for meta in obstore.list_with_delimiter(self.store, folder or None)["objects"]
            ]

    def names_in(self, folder: str) -> list[str]:
        """The names of the files directly in `folder`. Of a local folder that is all that is asked
        for, which takes a tenth of what `files_in` does."""
        if not self.is_local:
            return [file.path.rsplit("/", 1)[-1] for file in self.files_in(folder)]
        with self._errors_named(folder):
            try:
                with os.scandir(Path(self.uri, folder)) as entries:
                    return [entry.name for entry in entries if entry.is_file()]
            except (FileNotFoundError, NotADirectoryError):
                return []
            except PermissionError:
                raise
            except OSError as error:
                raise StorageFailed(f"{self.uri}/{folder}: {error.strerror}.") from error

    def folders(self, prefix: str = "") -> list[str]:
        """The folders directly below `prefix`, as paths relative to the root."""
        with self._errors_named(prefix):
            return list(obstore.list_with_delimiter(self.store, prefix or None)["common_prefixes"])

    def delete(self, paths: Sequence[str]) -> None:
        """Deletes files; those already gone are no error. A remote store is asked to delete many
        at once; on the local disk no symbolic link below the root is followed.

        Raises:
            PermissionDenied: no write access.
            StorageFailed: a path leads out of the root, or (local) by way of a link.
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
            except FileNotFoundError:  # of a store that minds, which may have given up there
                self._delete_each(chunk)

    def _delete_each(self, paths: Sequence[str]) -> None:
        for path in paths:
            with suppress(FileNotFoundError), self._errors_named(path, writing=True):
                obstore.delete(self.store, path)

    def unfinished(self, prefix: str) -> list[StoredFile]:
        """What killed writers left below `prefix` of a local root, which no other listing shows.
        Of a remote store, which has no such files, nothing: parts of an upload that was never
        completed are seen by no listing, and go by the bucket's own rule for them."""
        if not self.is_local:
            return []
        with self._errors_named(prefix):
            return [
                StoredFile(path, status.st_size, status.st_mtime)
                for path, status in unfinished_files(Path(self.uri), prefix)
            ]

    def linked_folders(self, prefix: str) -> list[str]:
        """The symbolic links on the way to or below `prefix` that lead to folders, as paths
        relative to the root; only a local root has any."""
        return linked_folders(Path(self.uri), prefix) if self.is_local else []

    def delete_empty_folders(self, prefix: str) -> int:
        """Removes empty folders below and including `prefix` on a local root; object stores have
        none. Returns how many went."""
        return remove_empty_folders(Path(self.uri), prefix) if self.is_local else 0


def _stored_file(meta: Mapping[str, Any]) -> StoredFile:
    return StoredFile(meta["path"], meta["size"], meta["last_modified"].timestamp())


@contextmanager
def _panic_named(path: str) -> Iterator[None]:
    """Turns a panic of obstore's into an error: get_ranges has one where a file is too short,
    opening a store has one for some options."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise StorageFailed(f"{path}: obstore gave up ({_first_line(error)}).") from error


def _first_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0].rstrip(". ")
