"""When each table is looked at. A few threads look; the looks of a round are spread over its time,
and never two of one table at once. A store that does not answer keeps half of them at most."""

import hashlib
import heapq
import logging
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, inf
from threading import Condition, Thread
from time import monotonic

log = logging.getLogger(__name__)

_LONGEST_WAIT = 10.0


@dataclass(slots=True)
class _Table:
    """A table's turn. Times are those of `monotonic`.

    Attributes:
        round: The beginning of the first of its rounds of `interval` seconds.
        due: When it is looked at next.
        looked_at: Whether a thread does.
        again: Whether it is to be looked at once more, since something has happened meanwhile.
    """

    interval: float
    round: float
    due: float
    looked_at: bool = False
    again: bool = False


class Polls:
    """Looks at each table: at first at once, then every `interval` seconds, and when asked.

    Args:
        look: Looks at a table, by its base path. What it raises is logged.
        threads: How many looks there are at a time; 0 for none.
    """

    def __init__(self, look: Callable[[str], None], *, threads: int = 4) -> None:
        self._look = look
        self._tables: dict[str, _Table] = {}
        self._turns: list[tuple[float, str]] = []
        self._most_of_a_store = max(1, threads // 2)
        self._looks = Counter[str]()
        self._held: defaultdict[str, deque[tuple[float, str]]] = defaultdict(deque)
        """The turns whose time has come, by the store that has enough looks."""
        self._changed = Condition()
        self._is_closing = False
        self._threads = [
            Thread(target=self._run, name=f"fleet-poll-{number}", daemon=True)
            for number in range(threads)
        ]

    def start(self) -> None:
        """Starts the threads."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Begins no further look, and waits some seconds for the running ones."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(_LONGEST_WAIT)

    def keep(self, intervals: Mapping[str, float]) -> None:
        """Looks at these tables from now on, and at no other.

        Args:
            intervals: Base path → seconds between two looks.
        """
        now = monotonic()
        with self._changed:
            for name in self._tables.keys() - intervals.keys():
                del self._tables[name]
            for name, interval in intervals.items():
                table = self._tables.get(name)
                if table is None:
                    self._tables[name] = _Table(interval, now + share_of(name) * interval, now)
                    heapq.heappush(self._turns, (now, name))
                elif table.interval != interval:
                    table.interval, table.round = interval, now + share_of(name) * interval
                    self._set(name, table, min(table.due, table.round))
            self._changed.notify_all()

    def soon(self, name: str) -> None:
        """Looks at a table as soon as a thread is free."""
        with self._changed:
            table = self._tables.get(name)
            if table is None or not self._threads:
                return
            if table.looked_at:
                table.again = True
            else:
                self._set(name, table, monotonic())
            self._changed.notify()

    def _run(self) -> None:
        while (name := self._next()) is not None:
            try:
                self._look(name)
            except Exception:
                log.exception("The look at %s failed.", name)
            self._done(name)

    def _next(self) -> str | None:
        with self._changed:
            while not self._is_closing:
                now = monotonic()
                moment, name = self._turns[0] if self._turns else (inf, "")
                if moment > now:
                    self._changed.wait(None if moment == inf else moment - now)
                    continue
                turn, store = heapq.heappop(self._turns), _store_of(name)
                table = self._tables.get(name)
                # Turns that were moved, or whose table has left, are past.
                if table is None or table.due != moment or table.looked_at:
                    self._release(store)
                    continue
                if self._looks[store] >= self._most_of_a_store:
                    self._held[store].append(turn)
                    continue
                self._looks[store] += 1
                table.looked_at = True
                return name
        return None

    def _done(self, name: str) -> None:
        store = _store_of(name)
        with self._changed:
            self._looks[store] -= 1
            self._release(store)
            self._changed.notify()
            table = self._tables.get(name)
            if table is None:
                return
            now = monotonic()
            rounds = max(0, ceil((now - table.round) / table.interval))
            due = now if table.again else table.round + rounds * table.interval
            table.looked_at = table.again = False
            self._set(name, table, due)
            self._changed.notify()

    def _release(self, store: str) -> None:
        """Another table of the store may have its turn."""
        if held := self._held[store]:
            heapq.heappush(self._turns, held.popleft())

    def _set(self, name: str, table: _Table, due: float) -> None:
        table.due = due
        heapq.heappush(self._turns, (due, name))


def _store_of(uri: str) -> str:
    """The store of a base path; "" for a local disk."""
    return uri.rpartition("://")[0] and "/".join(uri.split("/", 3)[:3])


def share_of(name: str) -> float:
    """A number from 0 to 1, the same in each run, and even over many names."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) / 2**32
