"""The files below the root of an object store, by `obstore` (Rust's object_store): S3, Google Cloud
Storage, Azure, and memory for tests. Errors of the client become Python's or the service's."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import MemoryStore, ObjectStore, from_url

from hudi_index_service.errors import Remedy, StorageFailed, StorageUnsupported
from hudi_index_service.process import OwnRuntime
from hudi_index_service.storage.contract import Files, StoredFile
from hudi_index_service.wording import first_line

# Options of the HTTP client rather than the store: obstore takes them separately.
_CLIENT_OPTION = re.compile(
    r"(?:(?:aws|azure|google)_)?(?P<name>allow_http|allow_invalid_certificates|connect_timeout"
    r"|http1_only|http2_only|pool_idle_timeout|pool_max_idle_per_host|proxy_ca_certificate"
    r"|proxy_excludes|proxy_url|timeout|user_agent)",
    re.IGNORECASE,
)

_REFUSALS = ("ermission denied", "AccessDenied")
"""Of S3's deletion of several files at once."""

_METADATA_SERVICE = "169.254.169.254"
"""Asked for credentials only if none are given."""

_CREDENTIALS = {
    "s3": Remedy(
        "Pass access_key_id and secret_access_key in storage_options, or set AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY.",
        command="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
    ),
    "gs": Remedy(
        "Pass service_account in storage_options, the path of a key file, or set "
        "GOOGLE_SERVICE_ACCOUNT.",
        command="Set GOOGLE_SERVICE_ACCOUNT to the path of a key file.",
    ),
}

_runtime = OwnRuntime("used an object store")

_UNORDERED = "--x-s3"  # buckets of S3 Express, whose listings have no order


class RemoteStore(Files):
    """The objects below a prefix; see `Files` for what each method does.

    Args:
        uri, options: See `Storage`.

    Raises:
        StorageFailed: the client cannot be made.
    """

    deleted_at_once = 1000  # S3's limit for one request

    def __init__(self, uri: str, options: Mapping[str, str]) -> None:
        self._uri = uri
        self.lists_in_order = _UNORDERED not in uri
        try:
            self._store = _opened(uri, options)
        except BaseError as error:
            raise _failure(f"{uri} cannot be opened", error) from error

    def exists(self) -> bool:
        """Whether anything is stored, by the first page of a listing."""
        with self._errors_named(""):
            return any(obstore.list(self._store))

    def read(self, path: str) -> bytes:
        with self._errors_named(path):
            return bytes(obstore.get(self._store, path).bytes())

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Sequence[Any]:
        """The ranges, by concurrent requests; adjacent ones share a request."""
        with self._errors_named(path), _panic_named(f"{self._uri}/{path}"):
            return obstore.get_ranges(
                self._store,
                path,
                starts=[start for start, _ in ranges],
                ends=[end for _, end in ranges],
                coalesce=0,
            )

    def status(self, path: str) -> StoredFile:
        with self._errors_named(path):
            return _stored_file(obstore.head(self._store, path))

    def download(self, path: str, target: Path) -> int:
        """Copies a file in chunks; returns its size."""
        size = 0
        with self._errors_named(path), target.open("wb") as out:
            for chunk in obstore.get(self._store, path).stream():
                size += out.write(chunk)
        return size

    def put(self, path: str, data: bytes | Path, *, new: bool) -> None:
        """Stores a new file by put-if-absent, another one in parts if it is large."""
        with self._errors_named(path):
            obstore.put(self._store, path, data, mode="create" if new else "overwrite")

    def delete(self, paths: Sequence[str]) -> None:
        """Deletes files by one request. The store reports missing ones, and may have stopped
        there."""
        with self._errors_named(paths[0]):
            obstore.delete(self._store, list(paths))

    def below(self, folder: str) -> list[StoredFile]:
        with self._errors_named(folder):
            return list(_files(obstore.list(self._store, folder or None)))

    def before(self, end: str) -> list[StoredFile]:
        """All files whose paths are less than `end`; no page after that is requested."""
        files: list[StoredFile] = []
        with self._errors_named(""):
            for file in _files(obstore.list(self._store)):
                if file.path >= end:
                    break
                files.append(file)
        return files

    def after(self, start: str) -> list[StoredFile]:
        with self._errors_named(""):
            return list(_files(obstore.list(self._store, offset=start)))

    def level(self, folder: str) -> tuple[list[StoredFile], list[str]]:
        """The files and the folders directly in a folder, by one listing."""
        with self._errors_named(folder):
            result = obstore.list_with_delimiter(self._store, folder or None)
        return [_stored_file(meta) for meta in result["objects"]], list(result["common_prefixes"])

    @contextmanager
    def _errors_named(self, path: str) -> Iterator[None]:
        place = f"{self._uri}/{path}"
        _runtime.require()
        try:
            yield
        except AlreadyExistsError as error:
            raise FileExistsError(place) from error
        except FileNotFoundError as error:
            raise FileNotFoundError(first_line(error)) from error
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise PermissionError(first_line(error)) from error
        except NotSupportedError as error:
            raise StorageUnsupported(
                f"{self._uri}: the store lacks an operation that building needs "
                f"({first_line(error)}).",
                remedy="Use a store with conditional writes (put-if-absent).",
            ) from error
        except BaseError as error:
            if any(sign in str(error) for sign in _REFUSALS):
                raise PermissionError(first_line(error)) from error
            raise _failure(place, error) from error


def _failure(beginning: str, error: BaseError) -> StorageFailed:
    text = str(error)
    if _METADATA_SERVICE in text:
        return StorageFailed(
            f"{beginning}: no credentials are given, and this machine has none of its own.",
            remedy=_CREDENTIALS.get(beginning.split(":", 1)[0]),
        )
    if "builder error" in text and "http://" in text:
        return StorageFailed(
            f"{beginning}: the endpoint is http:, which is not allowed.",
            remedy=Remedy(
                'Use https:, or pass "allow_http": "true" in storage_options.',
                command="Use https:, or set AWS_ALLOW_HTTP=true.",
            ),
        )
    return StorageFailed(f"{beginning}: {first_line(error)}.")


def _opened(uri: str, options: Mapping[str, str]) -> ObjectStore:
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


@lru_cache(maxsize=64)
def _memory_store(name: str) -> MemoryStore:
    """One shared store per name, so that every opening of ``memory://name`` sees the same files."""
    return MemoryStore()


def _files(chunks: Iterable[Iterable[Any]]) -> Iterator[StoredFile]:
    return (_stored_file(meta) for chunk in chunks for meta in chunk)


def _stored_file(meta: Any) -> StoredFile:
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
        raise StorageFailed(f"{path}: the store's client failed ({first_line(error)}).") from error
