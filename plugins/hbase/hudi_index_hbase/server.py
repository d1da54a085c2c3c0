"""This process's view of HBase's Thrift server: connections, requests, and availability.

A connection belongs to one process and, during a request, to one thread. Reads have a time limit.
Once the server is unavailable, reads fail at once for a while, so that a query over a hundred base
files does not wait a hundred times. Writes are retried.
"""

import logging
import os
import random
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from hudi_index_service.config import HBaseSettings
from hudi_index_service.errors import EntryInvalid, IndexServerUnavailable, NativeModuleMissing
from hudi_index_service.index.files.opened_file import count
from hudi_index_service.storage.waiting import Backoff

if TYPE_CHECKING:
    from hudi_index_hbase.connection import TimedConnection

log = logging.getLogger(__name__)

T = TypeVar("T")

Request = Callable[[Any], T]
"""A request to a `happybase.Table`. Requests are idempotent."""


@lru_cache(maxsize=16)
def server_of(settings: HBaseSettings) -> "HBaseServer":
    """This process's server object for these settings."""
    return HBaseServer(settings)


class HBaseServer:
    """A client of the server. Safe to use from several threads, and in forked processes.

    Attributes:
        settings: The server's address, and time limits.
        kept: The cache of cells that were read.
        requests: The number of requests attempted since the process began, without those refused
            while the server counts as unavailable.
    """

    def __init__(self, settings: HBaseSettings) -> None:
        self.settings = settings
        self.requests = 0
        self._begin()
        _servers.add(self)

    def _begin(self) -> None:
        self.kept = KeptCells(self.settings.cache_mb * 2**20)
        self._idle: deque[TimedConnection] = deque()
        self._health = _Health(self.settings)

    def begin_anew(self) -> None:
        """Resets a process that was just forked: it shares nothing with its parent, not even
        locks."""
        for connection in self._idle:  # the parent's: not even a close may be sent on them
            connection.abandon()
        self._begin()

    @property
    def name(self) -> str:
        """Host and port, for messages."""
        return f"{self.settings.host}:{self.settings.port}"

    @property
    def table_name(self) -> str:
        """The HBase table that holds all cells, with its namespace."""
        return f"{self.settings.namespace}:{self.settings.table}"

    def read(self, request: "Request[T]", deadline: float) -> T:
        """Sends a request that reads cells.

        Args:
            deadline: The time by which the answer must arrive, as of `time.monotonic`.

        Raises:
            EntryInvalid: the table does not exist.
            IndexServerUnavailable: there was no answer in time, or the server was unavailable
                recently.
            NativeModuleMissing: happybase, or a package for Kerberos, is not installed.
        """
        self._health.check()
        began = monotonic()
        count(requests=1)
        try:
            answer = self._send(request, deadline)
        except client().FAILURES as error:
            if self._is_absence(error, deadline):
                raise EntryInvalid(
                    f"HBase at {self.name} has no table {self.table_name}, or not one for indexes."
                ) from error
            raise self._health.record_failure(self._failure(error)) from error
        self._health.record_answer(monotonic() - began)
        return answer

    def _is_absence(self, error: BaseException, deadline: float) -> bool:
        """Whether a request failed because the table does not exist. HBase does not say so if the
        request was for several rows; then it is asked for one."""
        if "RetriesExhausted" not in str(error):
            return bool(client().is_absence(error))
        try:
            self._send(lambda table: table.row(b"\0"), deadline)
        except client().FAILURES as failure:
            return bool(client().is_absence(failure))
        return False

    def write(self, request: "Request[T]") -> T:
        """Sends a request that writes, or that a write depends on; retries it if it fails.

        Raises:
            IndexServerUnavailable: every attempt failed.
            NativeModuleMissing: see `read`.
        """
        settings = self.settings
        for attempt in range(1, settings.attempts + 1):
            try:
                return self._send(request, monotonic() + settings.write_seconds)
            except client().FAILURES as error:
                failure = self._failure(error)
                if attempt == settings.attempts or isinstance(error, client().REFUSALS):
                    attempts = f" ({attempt} attempts)" if attempt > 1 else ""
                    raise IndexServerUnavailable(f"{failure}{attempts}.") from error
                pause = _pause(settings, attempt)
                log.warning("%s; attempt %d follows in %.1f s.", failure, attempt + 1, pause)
                sleep(pause)
        raise AssertionError("there is at least one attempt")

    def has_table(self) -> bool:
        """Whether the table exists. Raises the errors of `write`."""
        return self.write(lambda table: bool(client().has_table(table.connection, self.table_name)))

    def make_table(self, families: Mapping[str, Mapping[str, object]]) -> None:
        """Creates the table with these column families, unless it exists. Raises the errors of
        `write`."""
        self.write(lambda table: client().make_table(table.connection, self.table_name, families))

    def close(self) -> None:
        """Closes the idle connections."""
        while (connection := self._take()) is not None:
            connection.close()

    def _take(self) -> "TimedConnection | None":
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _send(self, request: "Request[T]", deadline: float) -> T:
        """Uses an idle connection; if the server has closed it meanwhile, a new one."""
        self.requests += 1
        idle = self._take()
        if idle is not None:
            try:
                return self._by(idle, request, deadline)
            except client().LOST:
                self.close()
        return self._by(client().TimedConnection(self.settings, deadline), request, deadline)

    def _by(self, connection: "TimedConnection", request: "Request[T]", deadline: float) -> T:
        connection.deadline = deadline
        try:
            answer = request(connection.table(self.table_name))
        except BaseException:
            connection.close()  # an answer may still arrive
            raise
        self._idle.append(connection)
        return answer

    def _failure(self, error: BaseException) -> str:
        """The failure as a sentence without its full stop."""
        return f"HBase at {self.name}, table {self.table_name}: {client().failure_reason(error)}"


_servers: "WeakSet[HBaseServer]" = WeakSet()


def _after_fork() -> None:
    for server in list(_servers):
        server.begin_anew()


os.register_at_fork(after_in_child=_after_fork)


def client() -> Any:
    """The module that needs happybase.

    Raises:
        NativeModuleMissing: happybase is not installed.
    """
    try:
        from hudi_index_hbase import connection
    except ImportError as error:
        raise NativeModuleMissing(
            f"The index type hbase needs the Python module {error.name}, which is missing.",
            remedy="Install it with pip install 'hudi-index-service[hbase]', also on Spark's "
            "executors.",
        ) from error
    return connection


def _pause(settings: HBaseSettings, attempt: int) -> float:
    """Seconds until the next attempt, randomised so that builders do not all retry at once."""
    longest = Backoff(settings.backoff_seconds, settings.backoff_max_seconds)
    return longest.seconds(attempt) * random.uniform(0.5, 1)


@dataclass(slots=True)
class _Health:
    """The server's availability, as observed by reads."""

    settings: HBaseSettings
    reason: str = ""
    away_since: float | None = None
    slow: int = 0
    lock: Lock = field(default_factory=Lock)

    def check(self) -> None:
        """Raises IndexServerUnavailable while the server counts as unavailable."""
        with self.lock:
            if self.away_since is None:
                return
            ago = monotonic() - self.away_since
            if ago >= self.settings.pause_seconds:
                self.away_since, self.slow = None, 0
                return
            reason = self.reason
        seconds_left = self.settings.pause_seconds - ago
        raise IndexServerUnavailable(
            f"{reason} ({ago:.0f} s ago; the next attempt is possible in {seconds_left:.0f} s)."
        )

    def record_failure(self, reason: str) -> IndexServerUnavailable:
        """Records a failed request: the server counts as unavailable."""
        with self.lock:
            self.reason, self.away_since = reason, monotonic()
        return IndexServerUnavailable(f"{reason}.")

    def record_answer(self, seconds: float) -> None:
        """Records the duration of a request; several slow ones in a row count as a failure."""
        settings = self.settings
        with self.lock:
            self.slow = self.slow + 1 if seconds > settings.slow_seconds else 0
            if self.slow >= settings.slow_requests:
                self.reason = (
                    f"HBase at {settings.host}:{settings.port} is slow: {self.slow} requests in a "
                    f"row took more than {settings.slow_seconds:g} s each"
                )
                self.away_since = monotonic()


class KeptCells:
    """A cache of cells by row key that evicts the least recently used. An entry's cells never
    change.

    Args:
        most_bytes: The maximum size of the cache.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._cells: OrderedDict[bytes, bytes] = OrderedDict()
        self._lock = Lock()

    def get(self, key: bytes) -> bytes | None:
        """The cell, if it is in the cache."""
        with self._lock:
            cell = self._cells.get(key)
            if cell is not None:
                self._cells.move_to_end(key)
            return cell

    def add(self, key: bytes, cell: bytes) -> None:
        """Adds a cell, unless it is larger than the whole cache."""
        if len(cell) > self._most_bytes:
            return
        with self._lock:
            self._bytes += len(cell) - len(self._cells.pop(key, b""))
            self._cells[key] = cell
            while self._bytes > self._most_bytes:
                self._bytes -= len(self._cells.popitem(last=False)[1])
