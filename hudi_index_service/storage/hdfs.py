"""The files below a folder of HDFS, by `hdfs-native`, a client that needs no JVM.

Only this module imports it; it is installed with ``hudi-index-service[hdfs]``. It reads
``core-site.xml`` and ``hdfs-site.xml`` in ``HADOOP_CONF_DIR``, or in ``$HADOOP_HOME/etc/hadoop``.
Storage options are Hadoop's keys, too, and take precedence; ``kerberos_principal``,
``kerberos_keytab`` and ``kerberos_cache`` name other Kerberos credentials than the user's ticket.

The client itself waits without end for a name node that does not answer. So it is called in other
threads, and waited for with a time limit. (Its coroutines could be canceled instead, but release
0.14.7 panics in them when it tries a name node again.) It tries a service's name nodes in order,
and a host that is switched off delays it by TCP's limit, about two minutes, again and again. So
those that cannot be connected to are left out.
"""

import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from secrets import randbits
from socket import create_connection
from threading import Thread
from typing import Any, NoReturn, TypeVar
from xml.etree import ElementTree

from hdfs_native import Client, FileStatus

from hudi_index_service.errors import StorageFailed, StorageUnsupported
from hudi_index_service.storage.contract import (
    Files,
    StoredFile,
    is_unfinished,
    parts_of,
    unfinished_name,
)
from hudi_index_service.wording import first_line

log = logging.getLogger(__name__)

_T = TypeVar("_T")

_DEFAULTS = {"dfs.client.failover.max.attempts": "5"}
"""The client's own 15 attempts take three minutes if no name node can be reached; these take about
ten seconds."""

_TIMEOUT = "dfs.client.socket-timeout"
"""The option for the milliseconds that one call of the client may take: a request to the name node,
or the transfer of a chunk or range."""

_TIMEOUT_MS = "60000"
_CHUNK = 8 * 2**20  # bytes
_AT_ONCE = 16  # ranges that are read, or files that are deleted
_LISTED_AT_ONCE = 1000  # as many as the name node sends at a time

_CONNECTED_WITHIN = 3  # seconds, of each name node
_CONFIGURATION = ("core-site.xml", "hdfs-site.xml")

_CREDENTIALS = ("kerberos_principal", "kerberos_keytab", "kerberos_cache")

# RPCError("org.….SafeModeException", "Cannot …\n\tat …"), InvalidArgument("No …"), GSSAPIError(…).
_CLIENT_ERROR = re.compile(
    r'(?P<kind>\w+)\((?:"(?P<exception>[\w.$]+)", |.*, )?"(?P<message>.*?)\.?(?:\\n.*)?"\)',
    re.DOTALL,
)
_REFUSED = "AccessControlException"
_IN_A_FILE = "(is not a directory)"  # of an AccessControlException, too
_KERBEROS = re.compile("SASL|GSSAPI|[Kk]erberos|authentication is not enabled")
_DISCONNECTED = "listener disconnected"  # also what a client without Kerberos gets
_NOT_EMPTY = "PathIsNotEmptyDirectoryException"

_UNREACHABLE = (
    "Check that the name node is running and that the location names it: hdfs://host:port/…, or a "
    "name service of HADOOP_CONF_DIR or of the storage options (dfs.ha.namenodes.<service>, "
    "dfs.namenode.rpc-address.<service>.<name node>)."
)
_NO_TICKET = (
    "set hadoop.security.authentication to kerberos, install libgssapi_krb5, and get a ticket "
    "(kinit), or give the storage options kerberos_principal and kerberos_keytab."
)


class Hdfs(Files):
    """See `Files` for what each method does. A file is written under another name and then renamed,
    which fails if the name is taken: one step of the name node, so that nobody sees an incomplete
    file.

    Args:
        uri: ``hdfs://<name node or service>/<folder>``.
        options: See above.

    Raises:
        StorageFailed: the client cannot be made.
    """

    deleted_at_once = 100

    def __init__(self, uri: str, options: Mapping[str, str]) -> None:
        self._uri = uri
        self._service, _, folder = uri.removeprefix("hdfs://").partition("/")
        self._root = f"/{folder}"
        self._options = {**_DEFAULTS, **{key: str(value) for key, value in options.items()}}
        self._seconds = _seconds(self._options.get(_TIMEOUT, _TIMEOUT_MS))
        self._client = self._connected()

    def _connected(self) -> Client:
        config = {**self._options, **_connectable_only(self._service, self._options)}
        credentials = {each: config.pop(each, None) for each in _CREDENTIALS}
        with self._errors_named(""):
            return Client(f"hdfs://{self._service}/", config, **credentials)

    def exists(self) -> bool:
        return self._is_folder(self._root)

    def read(self, path: str) -> bytes:
        return b"".join(self._chunks(path))

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The ranges, many at once; fewer bytes where the file ends."""
        reader = self._call(path, self._client.read, self._name(path))
        size = len(reader)  # the client panics beyond it
        within = [(min(start, size), min(end, size)) for start, end in ranges]
        return self._calls(path, reader.read_range, [(s, e - s) for s, e in within])

    def status(self, path: str) -> StoredFile:
        status = self._call(path, self._client.get_file_info, self._name(path))
        if status.isdir:
            raise FileNotFoundError(f"{self._uri}/{path} is no file")
        return self._stored_file(status)

    def download(self, path: str, target: Path) -> int:
        """Copies a file chunk by chunk; returns its size."""
        with target.open("wb") as out:
            return sum(out.write(chunk) for chunk in self._chunks(path))

    def put(self, path: str, data: bytes | Path, *, new: bool) -> None:
        name = self._name(path)
        try:
            unfinished = unfinished_name(name, randbits(63))
            writer = self._call(path, self._client.create, unfinished)
            try:
                for piece in _pieces(data):
                    self._call(path, writer.write, piece)
                self._call(path, writer.close)
                self._call(path, self._client.rename, unfinished, name, not new)
            except BaseException:
                with suppress(OSError, StorageFailed):  # then cleaning removes it later
                    self._call(path, self._client.delete, unfinished)
                raise
        except (FileNotFoundError, NotADirectoryError) as error:
            place = f"{self._uri}/{path}"
            raise StorageFailed(f"{place} cannot be written: {first_line(error)}.") from error

    def delete(self, paths: Sequence[str]) -> None:
        """Deletes files, several at once; missing ones are no error."""
        self._calls(paths[0], self._client.delete, [(self._name(path),) for path in paths])

    def below(self, folder: str) -> list[StoredFile]:
        return [file for file in self._all_below(folder) if not _is_leftover(file)]

    def level(self, folder: str) -> tuple[list[StoredFile], list[str]]:
        """The files and the folders directly in a folder, by one listing."""
        listed = self._listed(self._folder(folder), recursive=False)
        files = [self._stored_file(each) for each in listed if not each.isdir]
        folders = [self._path(each.path) for each in listed if each.isdir]
        return [file for file in files if not _is_leftover(file)], folders

    def unfinished(self, folder: str) -> list[StoredFile]:
        return [file for file in self._all_below(folder) if _is_leftover(file)]

    def delete_empty_folders(self, folder: str) -> int:
        name = self._folder(folder)
        if not self._is_folder(name):
            return 0
        listed = self._listed(name, recursive=True)
        in_use = {_parent(each.path) for each in listed if not each.isdir}
        removed = 0
        folders = [name, *(each.path for each in listed if each.isdir)]
        for each in sorted(folders, key=len, reverse=True):  # the deepest first
            if each not in in_use and self._delete_if_empty(each):
                removed += 1
            else:
                in_use.add(_parent(each))
        return removed

    # --- names -------------------------------------------------------------------------------

    def _name(self, path: str) -> str:
        """A file's path in HDFS."""
        return "/".join([self._root, *parts_of(path)])

    def _folder(self, folder: str) -> str:
        return self._name(folder) if folder else self._root

    def _path(self, name: str) -> str:
        return name.removeprefix(self._root).removeprefix("/")

    def _stored_file(self, status: FileStatus) -> StoredFile:
        return StoredFile(self._path(status.path), status.length, status.modification_time / 1000)

    # --- steps -------------------------------------------------------------------------------

    def _chunks(self, path: str) -> Iterator[bytes]:
        reader = self._call(path, self._client.read, self._name(path))
        size = len(reader)
        for start in range(0, size, _CHUNK):
            yield self._call(path, reader.read_range, start, min(_CHUNK, size - start))

    def _all_below(self, folder: str) -> list[StoredFile]:
        listed = self._listed(self._folder(folder), recursive=True)
        return [self._stored_file(each) for each in listed if not each.isdir]

    def _listed(self, name: str, *, recursive: bool) -> list[FileStatus]:
        """What is in a folder; empty if there is no such folder."""
        listing = self._client.list_status(name, recursive)
        listed: list[FileStatus] = []
        with suppress(FileNotFoundError):
            while some := self._call(self._path(name), _next_of, listing):
                listed += some
        return [each for each in listed if each.path != name]  # a file is listed as itself

    def _is_folder(self, name: str) -> bool:
        try:
            return bool(self._call(self._path(name), self._client.get_file_info, name).isdir)
        except FileNotFoundError:
            return False

    def _delete_if_empty(self, name: str) -> bool:
        try:
            return self._call(self._path(name), self._client.delete, name)
        except StorageFailed as error:
            if _NOT_EMPTY not in str(error.__cause__):
                raise
            return False  # a builder has just put a file there

    # --- the client --------------------------------------------------------------------------

    def _call(self, path: str, call: Callable[..., _T], *arguments: Any) -> _T:
        """The result of a call; its error in Python's or the service's terms."""
        return self._calls(path, call, [arguments])[0]

    def _calls(
        self, path: str, call: Callable[..., _T], arguments: Sequence[tuple[Any, ...]]
    ) -> list[_T]:
        """The results of several calls, of which some run at a time."""
        results: list[Future[_T]] = [Future() for _ in arguments]
        threads = min(_AT_ONCE, len(arguments))
        for first in range(threads):
            share = arguments[first::threads], results[first::threads]
            # A daemon, so that one which waits without end does not keep the process alive.
            Thread(target=_work, args=(call, *share), name="hdfs", daemon=True).start()
        with self._errors_named(path):
            try:
                return [each.result(self._seconds) for each in results]
            except TimeoutError:
                self._client = self._connected()  # perhaps to another name node
                raise
            except (OSError, RuntimeError):
                # A process that ends while Rust's code runs in a thread may be aborted.
                wait(results, self._seconds)
                raise

    @contextmanager
    def _errors_named(self, path: str) -> Iterator[None]:
        place = f"{self._uri}/{path}".rstrip("/")
        try:
            yield
        except (FileNotFoundError, FileExistsError, IsADirectoryError):
            raise
        except TimeoutError as error:
            message = f"{place}: HDFS does not answer within {self._seconds:g} s."
            raise StorageFailed(message, remedy=_UNREACHABLE) from error
        except OSError as error:
            message = f"{place}: HDFS cannot be reached: {first_line(error)}."
            is_refusal = _DISCONNECTED in message
            remedy = f"{_UNREACHABLE} If it requires Kerberos, {_NO_TICKET}"
            raise StorageFailed(message, remedy=remedy if is_refusal else _UNREACHABLE) from error
        except NotImplementedError as error:
            message = f"{place}: the client of HDFS does not support this ({first_line(error)})."
            raise StorageUnsupported(message, remedy="Store the table elsewhere.") from error
        except RuntimeError as error:
            _raise_named(place, error)
        except BaseException as error:  # a panic's type cannot be imported
            if type(error).__name__ != "PanicException":
                raise
            message = f"{place}: the client of HDFS failed ({first_line(error)})."
            raise StorageFailed(message) from error


def _raise_named(place: str, error: RuntimeError) -> NoReturn:
    """Raises what the client's general error means, which only its text shows."""
    match = _CLIENT_ERROR.match(str(error))
    kind, exception, message = match.groups("") if match else ("", "", str(error))
    message = message.replace('\\"', '"')
    if _IN_A_FILE in message:
        raise NotADirectoryError(message) from error
    if _KERBEROS.search(f"{kind} {message}"):
        raise StorageFailed(f"{place}: {message}.", remedy=f"For Kerberos, {_NO_TICKET}") from error
    if exception.endswith(_REFUSED):
        raise PermissionError(message) from error
    remedy = _UNREACHABLE if kind == "InvalidArgument" else None
    raise StorageFailed(f"{place}: {message}.", remedy=remedy) from error


def _work(
    call: Callable[..., _T], arguments: Sequence[tuple[Any, ...]], results: Sequence["Future[_T]"]
) -> None:
    for each, result in zip(arguments, results, strict=True):
        try:
            result.set_result(call(*each))
        except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
            result.set_exception(error)


def _next_of(listing: Iterator[FileStatus]) -> list[FileStatus]:
    return list(islice(listing, _LISTED_AT_ONCE))


def _seconds(milliseconds: str) -> float:
    if not milliseconds.isdecimal() or not int(milliseconds):
        raise StorageFailed(f"{_TIMEOUT} is {milliseconds!r}, not a number of milliseconds.")
    return int(milliseconds) / 1000


def _pieces(data: bytes | Path) -> Iterator[bytes]:
    if isinstance(data, bytes):
        yield from (data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK))
        return
    with data.open("rb") as file:
        while piece := file.read(_CHUNK):
            yield piece


def _is_leftover(file: StoredFile) -> bool:
    return is_unfinished(file.path.rsplit("/", 1)[-1])


def _parent(name: str) -> str:
    return name.rsplit("/", 1)[0]


def _connectable_only(service: str, options: Mapping[str, str]) -> dict[str, str]:
    """An option that leaves the other name nodes out; none if there is no choice, or if none can be
    connected to.

    Args:
        service: The name of a name service, or of a host, which has no choice; "" for the service
            of ``fs.defaultFS``.
        options: Hadoop's, which take precedence over its configuration files.
    """
    config = {**_configured(), **options}
    default = config.get("fs.defaultFS", "").removeprefix("hdfs://").partition("/")[0]
    service = service or default
    names = f"dfs.ha.namenodes.{service}"
    addresses = {
        each: config.get(f"dfs.namenode.rpc-address.{service}.{each}", "")
        for each in (name.strip() for name in config.get(names, "").split(","))
    }
    if len(addresses) < 2:
        return {}
    with ThreadPoolExecutor(len(addresses), "name-nodes") as threads:
        connectable = list(threads.map(_is_connectable, addresses.values()))
    kept = [each for each, is_kept in zip(addresses, connectable, strict=True) if is_kept]
    return {names: ",".join(kept)} if kept else {}


def _is_connectable(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        create_connection((host, int(port)), _CONNECTED_WITHIN).close()
    except (OSError, ValueError) as error:
        log.info("Name node %s is left out: %s", address, error)
        return False
    return True


def _configured() -> dict[str, str]:
    """The properties of Hadoop's configuration files, which the client reads as well."""
    folder = os.environ.get("HADOOP_CONF_DIR")
    if folder is None and "HADOOP_HOME" in os.environ:
        folder = os.path.join(os.environ["HADOOP_HOME"], "etc", "hadoop")  # noqa: PTH118
    properties: dict[str, str] = {}
    for path in (Path(folder, each) for each in _CONFIGURATION) if folder else ():
        try:
            root = ElementTree.parse(path).getroot()
        except FileNotFoundError:
            continue
        except (OSError, ElementTree.ParseError) as error:  # the client has the last word
            log.info("%s is not read for name nodes: %s", path, error)
            continue
        for each in root.iter("property"):
            properties[each.findtext("name", "")] = each.findtext("value", "")
    return properties
