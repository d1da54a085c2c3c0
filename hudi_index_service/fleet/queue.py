"""The order in which the fleet's tables are built. Pure: the caller gives the time.

A table waits once, however often it is woken. Of the tables that may run, the next is the one with
the highest priority, after the longest wait: each `aging` seconds of waiting count as one step of
priority, so that none starves. A table whose build failed rests, longer after each failure in a
row, and holds up no other: of those that failed, only some run at a time, so that tables whose
builds hang leave slots to the others. A wake-up during a build is kept for one more.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf

from hudi_index_service.storage.waiting import Backoff


@dataclass(slots=True)
class _Table:
    """A table that waits, runs, rests, or is to be woken later. Times are the queue's own.

    Attributes:
        priority: The higher, the sooner.
        since: When it was first woken; None if it does not wait.
        order: Tells apart tables that were woken at the same time.
        failures: Builds in a row that failed.
        rests_until: The end of its rest.
        wakes_at: When it is woken without a call.
        is_doubtful: Whether its last build failed, and nobody has asked for it since.
    """

    priority: int = 0
    since: float | None = None
    order: int = 0
    running: bool = False
    failures: int = 0
    rests_until: float = -inf
    wakes_at: float = inf
    is_doubtful: bool = False


@dataclass(slots=True)
class FairQueue:
    """Which table is next.

    Every method takes the time in seconds. A time before the last one does no harm: while the clock
    is behind, the queue's own time stands still.

    Attributes:
        backoff: The rest of a table after failures in a row.
        aging: The seconds of waiting that count as one step of priority.
        most_doubtful: How many tables run at a time whose last builds failed.
    """

    backoff: Backoff
    aging: float = 300.0
    most_doubtful: float = inf
    _tables: dict[str, _Table] = field(default_factory=dict)
    _own_time: float = 0.0
    _last: float | None = None
    _woken: int = 0

    def wake(self, table: str, now: float, *, priority: int = 0) -> None:
        """Makes the table wait, unless it does already; its priority is the last one given."""
        state = self._tables.setdefault(table, _Table())
        state.priority = priority
        self._wait(state, self._time(now))

    def wake_later(self, table: str, now: float, seconds: float) -> None:
        """Wakes the table after this time, or when a call does before."""
        state = self._tables.setdefault(table, _Table())
        state.wakes_at = min(state.wakes_at, self._time(now) + max(0.0, seconds))

    def take(self, now: float, may_run: Callable[[str], bool] = lambda table: True) -> str | None:
        """The next table, which runs until `done`; None if none waits that may run.

        Args:
            may_run: Whether a table may run now for what the queue does not know, such as its
                window.
        """
        first = min(self._ready(now, may_run), default=None)
        if first is None:
            return None
        state = self._tables[first[1]]
        state.since, state.running = None, True
        return first[1]

    def has_ready(self, now: float, may_run: Callable[[str], bool] = lambda table: True) -> bool:
        """Whether `take` would return a table."""
        return any(True for _ in self._ready(now, may_run))

    def done(self, table: str, now: float, *, failed: bool | None) -> None:
        """The table's build has ended; one that failed lets it rest. None for something else than a
        build, which leaves its failures as they are."""
        state, time = self._tables.get(table), self._time(now)
        if state is None:  # forgotten meanwhile
            return
        state.running = False
        if failed is not None:
            state.failures = state.failures + 1 if failed else 0
            state.rests_until = time + self.backoff.seconds(state.failures) if failed else -inf
            state.is_doubtful = failed
        if not state.failures and state.since is None and state.wakes_at == inf:
            del self._tables[table]

    def wake_from_rest(self, table: str) -> None:
        """The table rests no longer."""
        if table in self._tables:
            self._tables[table].rests_until = -inf

    def forget(self, table: str) -> None:
        """The table is no longer of the fleet."""
        self._tables.pop(table, None)

    def withdraw(self, table: str) -> None:
        """The table no longer waits."""
        if table in self._tables:
            self._tables[table].since = None

    def end_rest(self, table: str) -> None:
        """The table need not rest, since somebody asks for it who has mended what failed. After
        another failure it rests for longer still."""
        if table in self._tables:
            self._tables[table].rests_until = -inf
            self._tables[table].is_doubtful = False

    def waits(self, table: str) -> bool:
        """Whether the table waits, resting or not."""
        return table in self._tables and self._tables[table].since is not None

    def __len__(self) -> int:
        """The number of tables that wait."""
        return sum(state.since is not None for state in self._tables.values())

    def delay(self, now: float) -> float | None:
        """The seconds until a table may run that may not now, if nothing wakes it; None if there is
        none."""
        time = self._time(now)
        moments = (
            min(state.rests_until if state.since is not None else inf, state.wakes_at)
            for state in self._tables.values()
            if not state.running
        )
        first = min((each for each in moments if each > time), default=inf)
        return None if first == inf else first - time

    def _wait(self, state: _Table, time: float) -> None:
        state.wakes_at = inf
        if state.since is None:
            self._woken += 1
            state.since, state.order = time, self._woken

    def _ready(
        self, now: float, may_run: Callable[[str], bool]
    ) -> Iterator[tuple[tuple[float, int], str]]:
        time = self._time(now)
        for table, state in self._tables.items():
            if self._is_ready(state, time) and may_run(table):
                yield self._rank(state), table

    def _is_ready(self, state: _Table, time: float) -> bool:
        if state.since is None or state.running or state.rests_until > time:
            return False
        return not state.is_doubtful or self._doubtful_running() < self.most_doubtful

    def _doubtful_running(self) -> int:
        return sum(each.running and each.is_doubtful for each in self._tables.values())

    def _rank(self, state: _Table) -> tuple[float, int]:
        """The lower, the sooner. All tables age alike, so the rank of one does not change."""
        assert state.since is not None
        return state.since - state.priority * self.aging, state.order

    def _time(self, now: float) -> float:
        """The queue's own time, which never steps back; wakes the tables whose time has come."""
        if self._last is not None:
            self._own_time += max(0.0, now - self._last)
        self._last = now
        for state in self._tables.values():
            if state.wakes_at <= self._own_time:
                self._wait(state, self._own_time)
        return self._own_time
