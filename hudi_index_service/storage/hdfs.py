"""The files below a folder of HDFS, by `hdfs-native`, a client that needs no JVM.

Only this module imports it; it is installed with ``hudi-index-service[hdfs]``. It reads
``core-site.xml`` and ``hdfs-site.xml`` in ``HADOOP_CONF_DIR``, or in ``$HADOOP_HOME/etc/hadoop``.
Storage options are Hadoop's keys, too, and take precedence; ``kerberos_principal``,
``kerberos_keytab`` and ``kerberos_cache`` name other Kerberos credentials than the user's ticket.

The client itself waits without end for a name node that does not answer. So each step is a
coroutine with a time limit, on an event loop in a thread of its own.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from secrets import randbits
from threading import Thread
from typing import Any, NoReturn, TypeVar

from hdfs_native import AsyncClient, AsyncFileReader, FileStatus

from hudi_index_service.errors import StorageFailed
from hudi_index_service.storage.contract import Files
from hudi_index_service.storage.names import is_unfinished, parts_of, unfinished_name
from hudi_index_service.storage.stored_file import StoredFile
from hudi_index_service.wording import first_line

_T = TypeVar("_T")

_DEFAULTS = {"dfs.client.failover.max.attempts": "5"}
"""The client's own 15 attempts take three minutes if no name node can be reached; these take about
ten seconds."""

_TIMEOUT = "dfs.client.socket-timeout"
"""The option for the milliseconds that one step may take: a call of the name node, or the transfer
of a chunk or range."""

_TIMEOUT_MS = "60000"
_CHUNK = 8 * 2**20  # bytes
_AT_ONCE = 16  # ranges that are read, or files that are deleted

_CREDENTIALS = ("kerberos_principal", "kerberos_keytab", "kerberos_cache")

# RPCError("org.….SafeModeException", "Cannot …\n\tat …"), InvalidArgument("No …"), ….
_CLIENT_ERROR = re.compile(
    r'\w+\((?:"(?P<exception>[\w.$]+)", )?.*?"(?P<message>.*?)\.?(?:\\n|"\)$)', re.DOTALL
)
_REFUSED = "AccessControlException"
_IN_A_FILE = "(is not a directory)"  # of an AccessControlException, too
_KERBEROS = re.compile("SASL|GSSAPI|[Kk]erberos|authentication is not enabled")
_NOT_EMPTY = "PathIsNotEmptyDirectoryException"

_UNREACHABLE = (
    "Check that the name node is running and that the location names it: hdfs://host:port/…, or a "
    "name service of HADOOP_CONF_DIR or of the storage options (dfs.ha.namenodes.<service>, "
    "dfs.namenode.rpc-address.<service>.<name node>)."
)
_NO_TICKET = (
    "Set hadoop.security.authentication to kerberos, install libgssapi_krb5, and get a ticket "
    "(kinit), or give the storage options kerberos_principal and kerberos_keytab."
)


class Hdfs(Files):
    """A file is written under another name and then renamed, which fails if the name is taken: one
    step of the name node, so that nobody sees an incomplete file.

    Args:
        uri: ``hdfs://<name node or service>/<folder>``.
        options: See above.

    Raises:
        StorageFailed: the client cannot be made.
    """

    deleted_at_once = 100

    def __init__(self, uri: str, options: Mapping[str, str]) -> None:
        self._uri = uri
        service, _, folder = uri.removeprefix("hdfs://").partition("/")
        self._root = f"/{folder}"
        config = {**_DEFAULTS, **{key: str(value) for key, value in options.items()}}
        credentials = {each: config.pop(each, None) for each in _CREDENTIALS}
        self._seconds = _seconds(config.get(_TIMEOUT, _TIMEOUT_MS))
        with self._errors_named(""):
            self._client = AsyncClient(f"hdfs://{service}/", config, **credentials)

    def exists(self) -> bool:
        """Whether the folder is there."""
        return self._run("", self._is_folder(self._root))

    def read(self, path: str) -> bytes:
        """The whole file."""
        return b"".join(self._chunks(path))

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The ranges, many at once; fewer bytes where the file ends."""
        return self._run(path, self._ranges(self._name(path), ranges))

    def status(self, path: str) -> StoredFile:
        """Size and time of a file."""
        status = self._run(path, self._limited(self._client.get_file_info(self._name(path))))
        if status.isdir:
            raise FileNotFoundError(f"{self._uri}/{path} is no file")
        return self._stored_file(status)

    def download(self, path: str, target: Path) -> int:
        """Copies a file chunk by chunk; returns its size."""
        with target.open("wb") as out:
            return sum(out.write(chunk) for chunk in self._chunks(path))

    def create(self, path: str, data: bytes | Path) -> None:
        """Stores a new file."""
        self._store(path, data, overwrite=False)

    def put(self, path: str, data: bytes | Path) -> None:
        """Stores a file, over an older one."""
        self._store(path, data, overwrite=True)

    def delete(self, paths: Sequence[str]) -> None:
        """Deletes files, several at once; missing ones are no error."""
        self._run(paths[0], self._together(self._client.delete, [(self._name(p),) for p in paths]))

    def below(self, folder: str) -> list[StoredFile]:
        """The files below a folder, at any depth."""
        return [file for file in self._all_below(folder) if not _is_leftover(file)]

    def level(self, folder: str) -> tuple[list[StoredFile], list[str]]:
        """The files and the folders directly in a folder, by one listing."""
        listed = self._run(folder, self._listed(self._folder(folder), recursive=False))
        files = [self._stored_file(each) for each in listed if not each.isdir]
        folders = [self._path(each) for each in listed if each.isdir]
        return [file for file in files if not _is_leftover(file)], folders

    def unfinished(self, folder: str) -> list[StoredFile]:
        """The half-written files of killed writers."""
        return [file for file in self._all_below(folder) if _is_leftover(file)]

    def delete_empty_folders(self, folder: str) -> int:
        """Removes empty folders; returns how many."""
        return self._run(folder, self._delete_empty(self._folder(folder)))

    # --- names -------------------------------------------------------------------------------

    def _name(self, path: str) -> str:
        """A file's path in HDFS."""
        return "/".join([self._root, *parts_of(path)])

    def _folder(self, folder: str) -> str:
        return self._name(folder) if folder else self._root

    def _path(self, status: FileStatus) -> str:
        return status.path.removeprefix(f"{self._root}/")

    def _stored_file(self, status: FileStatus) -> StoredFile:
        return StoredFile(self._path(status), status.length, status.modification_time / 1000)

    # --- reading -----------------------------------------------------------------------------

    def _chunks(self, path: str) -> Iterator[bytes]:
        reader = self._run(path, self._limited(self._client.read(self._name(path))))
        size = len(reader)
        for start in range(0, size, _CHUNK):
            length = min(_CHUNK, size - start)
            yield self._run(path, self._limited(reader.read_range(start, length)))

    async def _ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        reader: AsyncFileReader = await self._limited(self._client.read(name))
        size = len(reader)  # the client panics beyond it
        within = [(min(start, size), min(end, size)) for start, end in ranges]
        return await self._together(reader.read_range, [(s, e - s) for s, e in within])

    def _all_below(self, folder: str) -> list[StoredFile]:
        listed = self._run(folder, self._listed(self._folder(folder), recursive=True))
        return [self._stored_file(each) for each in listed if not each.isdir]

    async def _listed(self, name: str, *, recursive: bool) -> list[FileStatus]:
        """What is in a folder; empty if there is no such folder."""
        listed: list[FileStatus] = []
        clock = asyncio.get_running_loop().time
        with suppress(FileNotFoundError):
            async with asyncio.timeout(self._seconds) as limit:
                async for status in self._client.list_status(name, recursive):
                    listed.append(status)
                    limit.reschedule(clock() + self._seconds)
        return [each for each in listed if each.path != name]  # a file is listed as itself

    async def _is_folder(self, name: str) -> bool:
        try:
            status = await self._limited(self._client.get_file_info(name))
        except FileNotFoundError:
            return False
        return bool(status.isdir)

    # --- writing -----------------------------------------------------------------------------

    def _store(self, path: str, data: bytes | Path, *, overwrite: bool) -> None:
        try:
            self._run(path, self._write(self._name(path), data, overwrite))
        except (FileNotFoundError, NotADirectoryError) as error:
            place = f"{self._uri}/{path}"
            raise StorageFailed(f"{place} cannot be written: {first_line(error)}.") from error

    async def _write(self, name: str, data: bytes | Path, overwrite: bool) -> None:
        unfinished = unfinished_name(name, randbits(63))
        writer = await self._limited(self._client.create(unfinished))
        try:
            for chunk in _pieces(data):
                await self._limited(writer.write(chunk))
            await self._limited(writer.close())
            await self._limited(self._client.rename(unfinished, name, overwrite))
        except BaseException:
            with suppress(OSError, RuntimeError):  # otherwise cleaning removes it later
                await self._limited(self._client.delete(unfinished))
            raise

    async def _delete_empty(self, name: str) -> int:
        if not await self._is_folder(name):
            return 0
        listed = await self._listed(name, recursive=True)
        in_use = {_parent(each.path) for each in listed if not each.isdir}
        folders = [name, *(each.path for each in listed if each.isdir)]
        removed = 0
        for folder in sorted(folders, key=len, reverse=True):  # the deepest first
            if folder not in in_use and await self._delete_if_empty(folder):
                removed += 1
            else:
                in_use.add(_parent(folder))
        return removed

    async def _delete_if_empty(self, name: str) -> bool:
        try:
            return await self._limited(self._client.delete(name))
        except RuntimeError as error:
            if _NOT_EMPTY not in str(error):
                raise
            return False  # a builder has just put a file there

    # --- the client --------------------------------------------------------------------------

    def _run(self, path: str, work: Coroutine[Any, Any, _T]) -> _T:
        """The result of some work; its errors in Python's or the service's terms."""
        running = asyncio.run_coroutine_threadsafe(work, _loop())
        with self._errors_named(path):
            try:
                return running.result()
            except BaseException:
                running.cancel()  # if this thread was interrupted
                raise

    async def _limited(self, step: Awaitable[_T]) -> _T:
        async with asyncio.timeout(self._seconds):
            return await step

    async def _together(
        self, call: Callable[..., Awaitable[_T]], arguments: Sequence[tuple[Any, ...]]
    ) -> list[_T]:
        """The results of many calls, some of which run at a time."""
        turn = asyncio.Semaphore(_AT_ONCE)

        async def one(each: tuple[Any, ...]) -> _T:
            async with turn:
                return await self._limited(call(*each))

        return await asyncio.gather(*(one(each) for each in arguments))

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
            raise StorageFailed(message, remedy=_UNREACHABLE) from error
        except RuntimeError as error:
            _raise_named(place, error)
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            message = f"{place}: the client of HDFS failed ({first_line(error)})."
            raise StorageFailed(message) from error


def _raise_named(place: str, error: RuntimeError) -> NoReturn:
    """Raises what the client's general error means, which only its text shows."""
    text = str(error)
    match = _CLIENT_ERROR.match(text)
    exception, message = (match["exception"] or "", match["message"]) if match else ("", text)
    if _IN_A_FILE in message:
        raise NotADirectoryError(message) from error
    if _KERBEROS.search(text):
        raise StorageFailed(f"{place}: {message}.", remedy=_NO_TICKET) from error
    if exception.endswith(_REFUSED):
        raise PermissionError(message) from error
    remedy = _UNREACHABLE if text.startswith("InvalidArgument") else None
    raise StorageFailed(f"{place}: {message}.", remedy=remedy) from error


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="hdfs", daemon=True).start()
    return loop


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
