"""HBase's Thrift server as this process knows it: connections, requests, and whether it is away.

A connection belongs to one process and, for the time of a request, to one thread. Whoever reads
waits so long and no longer, and once the server is away, nobody waits for it for a while: a query
over a hundred base files does not wait a hundred times. Whoever writes tries again.
"""

import logging
import os
import random
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from hudi_index_service.backoff import Backoff
from hudi_index_service.config import HBaseSettings
from hudi_index_service.errors import EntryInvalid, IndexServerUnavailable, NativeModuleMissing
from hudi_index_service.index.fetched import count

if TYPE_CHECKING:
    from hudi_index_service.index.hbase.connection import TimedConnection

log = logging.getLogger(__name__)

T = TypeVar("T")

Request = Callable[[Any], T]
"""What is asked of a `happybase.Table`. Asked twice, it does what it does once."""


@lru_cache(maxsize=16)
def server_of(settings: HBaseSettings) -> "HBaseServer":
    """The one for these settings in this process."""
    return HBaseServer(settings)


class HBaseServer:
    """Safe to use from several threads, and in forked processes.

    Attributes:
        settings: Where it is, and how long is waited for it.
        kept: Cells that were read, to be read again.
        requests: How many requests were sent, or tried to be, since the process began; those that
            are refused while the server counts as away are none.
    """

    def __init__(self, settings: HBaseSettings) -> None:
        self.settings = settings
        self.requests = 0
        self._begin()
        _servers.add(self)

    def _begin(self) -> None:
        self.kept = KeptCells(self.settings.cache_mb * 2**20)
        self._idle = _Idle()
        self._health = _Health(self.settings)

    def begin_anew(self) -> None:
        """In a process that was just forked: nothing is its parent's, no lock either."""
        self._idle.abandon()
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
        """Asks for cells.

        Args:
            deadline: By which the answer has to be there, as `time.monotonic` counts.

        Raises:
            EntryInvalid: there is no such table.
            IndexServerUnavailable: no answer, not in time, or the server was away lately.
            NativeModuleMissing: happybase, or what Kerberos needs, is not installed.
        """
        self._health.check()
        began = monotonic()
        count(requests=1)
        try:
            found = self._ask(request, deadline)
        except self._failures as error:
            if _connecting().is_absence(error):
                raise EntryInvalid(
                    f"HBase at {self.name} has no table {self.table_name}, or not one for indexes."
                ) from error
            raise self._health.failed(self._told(error)) from error
        self._health.answered(monotonic() - began)
        return found

    def write(self, request: "Request[T]") -> T:
        """Asks for a change, or what a change needs to know; tries again if that fails.

        Raises:
            IndexServerUnavailable: it failed each time.
            NativeModuleMissing: see `read`.
        """
        known = self.settings
        for attempt in range(1, known.attempts + 1):
            try:
                return self._ask(request, monotonic() + known.write_seconds)
            except self._failures as error:
                told = self._told(error)
                if attempt == known.attempts or isinstance(error, _connecting().REFUSALS):
                    tried = f" ({attempt} attempts)" if attempt > 1 else ""
                    raise IndexServerUnavailable(f"{told}{tried}.") from error
                pause = _pause(known, attempt)
                log.warning("%s; attempt %d follows in %.1f s.", told, attempt + 1, pause)
                sleep(pause)
        raise AssertionError("there is at least one attempt")

    def has_table(self) -> bool:
        """Whether the table is there. Raises as `write` does."""
        return self.write(
            lambda table: bool(_connecting().has_table(table.connection, self.table_name))
        )

    def make_table(self, families: Mapping[str, Mapping[str, object]]) -> None:
        """Makes the table with these column families, unless it is there. Raises as `write`
        does."""
        self.write(
            lambda table: _connecting().make_table(table.connection, self.table_name, families)
        )

    def close(self) -> None:
        """Closes the connections that nobody uses."""
        self._idle.close()

    @property
    def _failures(self) -> tuple[type[BaseException], ...]:
        failures: tuple[type[BaseException], ...] = _connecting().FAILURES
        return failures

    def _ask(self, request: "Request[T]", deadline: float) -> T:
        """By an idle connection; if the server has closed that meanwhile, by a new one."""
        self.requests += 1
        idle = self._idle.take()
        if idle is not None:
            try:
                return self._by(idle, request, deadline)
            except _connecting().LOST:
                self._idle.close()
        return self._by(self._connected(deadline), request, deadline)

    def _connected(self, deadline: float) -> "TimedConnection":
        connection: TimedConnection = _connecting().TimedConnection(self.settings, deadline)
        return connection

    def _by(self, connection: "TimedConnection", request: "Request[T]", deadline: float) -> T:
        connection.deadline = deadline
        try:
            found = request(connection.table(self.table_name))
        except BaseException:
            connection.close()  # an answer may be on its way still
            raise
        self._idle.give(connection)
        return found

    def _told(self, error: BaseException) -> str:
        """What went wrong, in a sentence without its full stop."""
        return f"HBase at {self.name}, table {self.table_name}: {_connecting().told(error)}"


_servers: "WeakSet[HBaseServer]" = WeakSet()


def _after_fork() -> None:
    for server in list(_servers):
        server.begin_anew()


os.register_at_fork(after_in_child=_after_fork)


def require_client() -> None:
    """Looks whether happybase is installed.

    Raises:
        NativeModuleMissing: it is not.
    """
    _connecting()


def _connecting() -> Any:
    """The module that needs happybase.

    Raises:
        NativeModuleMissing: it is not installed.
    """
    try:
        from hudi_index_service.index.hbase import connection
    except ImportError as error:
        raise NativeModuleMissing(
            f"The index type hbase needs Python's module {error.name}, which is missing.",
            remedy="pip install 'hudi-index-service[hbase]', on Spark's executors as well.",
        ) from error
    return connection


def _pause(known: HBaseSettings, attempt: int) -> float:
    """Seconds before the attempt after this one; builders that failed at once come back apart."""
    longest = Backoff(known.backoff_seconds, known.backoff_max_seconds)
    return longest.seconds(attempt) * random.uniform(0.5, 1)


class _Idle:
    """Connections that nobody uses at the moment."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._connections: list[TimedConnection] = []

    def take(self) -> "TimedConnection | None":
        with self._lock:
            return self._connections.pop() if self._connections else None

    def give(self, connection: "TimedConnection") -> None:
        with self._lock:
            self._connections.append(connection)

    def close(self) -> None:
        with self._lock:
            closing, self._connections = self._connections, []
        for connection in closing:
            connection.close()

    def abandon(self) -> None:
        """Of the parent of a process that was forked: it must not speak, nor say good-bye, on
        them."""
        for connection in self._connections:
            connection.abandon()


@dataclass(slots=True)
class _Health:
    """Whether the server answers, as those find who read."""

    settings: HBaseSettings
    reason: str = ""
    away_since: float | None = None
    slow: int = 0
    lock: Lock = field(default_factory=Lock)

    def check(self) -> None:
        """Raises IndexServerUnavailable while the server counts as away."""
        with self.lock:
            if self.away_since is None:
                return
            ago = monotonic() - self.away_since
            if ago >= self.settings.pause_seconds:
                self.away_since, self.slow = None, 0
                return
            reason = self.reason
        left = self.settings.pause_seconds - ago
        raise IndexServerUnavailable(
            f"{reason} ({ago:.0f} s ago; it is not asked again for {left:.0f} s)."
        )

    def failed(self, reason: str) -> IndexServerUnavailable:
        """A request failed: the server is away."""
        with self.lock:
            self.reason, self.away_since = reason, monotonic()
        return IndexServerUnavailable(f"{reason}.")

    def answered(self, seconds: float) -> None:
        """A request took so long; several in a row that take too long are as bad as none."""
        known = self.settings
        with self.lock:
            self.slow = self.slow + 1 if seconds > known.slow_seconds else 0
            if self.slow >= known.slow_requests:
                self.reason = (
                    f"HBase at {known.host}:{known.port} is slow: {self.slow} requests in a row "
                    f"took more than {known.slow_seconds:g} s each"
                )
                self.away_since = monotonic()


class KeptCells:
    """Cells by row key, those that were read longest ago out first. An entry's cells never change.

    Args:
        most_bytes: That are kept.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._cells: OrderedDict[bytes, bytes] = OrderedDict()
        self._lock = Lock()

    def get(self, key: bytes) -> bytes | None:
        """The cell, if it is kept."""
        with self._lock:
            found = self._cells.get(key)
            if found is not None:
                self._cells.move_to_end(key)
            return found

    def add(self, key: bytes, cell: bytes) -> None:
        """Keeps a cell, if there is room for it at all."""
        if len(cell) > self._most_bytes:
            return
        with self._lock:
            self._bytes += len(cell) - len(self._cells.pop(key, b""))
            self._cells[key] = cell
            while self._bytes > self._most_bytes:
                self._bytes -= len(self._cells.popitem(last=False)[1])
