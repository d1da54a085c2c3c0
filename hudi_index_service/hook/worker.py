"""The worker: takes wake-ups and builds tables in a few threads, each table in one at a time.

A wake-up means only that something may be due; the build derives from the timeline what is due.
Wake-ups of one table that wait at the same time are therefore merged. After a build breaks off, its
table rests, longer after each failure in a row; a wake-up in that time waits and is not lost. The
build itself defers single base files that failed (`Build.deferred`); the worker wakes the table
when they are due again.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Condition, Thread
from time import monotonic

from hudi_index_service.build.outcomes import Build
from hudi_index_service.config import HookSettings
from hudi_index_service.errors import BuildInProgress, CallbackRefused, IndexServiceError
from hudi_index_service.hook.table_upkeep import TableUpkeep
from hudi_index_service.storage.waiting import Backoff
from hudi_index_service.wording import counted

log = logging.getLogger(__name__)

DEFAULT_BACKOFF = Backoff(first=5.0, longest=300.0)

Reconcile = Callable[[str], Build]
"""Builds what is due for the table at a base path."""

_NOTHING_IS_LOST = (
    "Nothing is lost: the next wake-up, or `hudi-index build <table>`, builds what is due."
)


class Clock:
    """A monotonic clock in seconds, with a wait."""

    def now(self) -> float:
        """The current time."""
        return monotonic()

    def wait(self, condition: Condition, until: float | None) -> None:
        """Waits until the condition, which the caller holds, is notified, or until the given time.
        May return early."""
        condition.wait(None if until is None else max(0.0, until - self.now()))


@dataclass(slots=True)
class _Table:
    """The state of a woken table while it runs or rests. Times are the clock's.

    Attributes:
        failures: Consecutive builds that broke off.
        not_before: Earliest time of the next build.
        retry_at: Time at which failed base files are due again.
    """

    running: bool = False
    failures: int = 0
    not_before: float = float("-inf")
    retry_at: float = float("inf")


class Worker:
    """Runs `reconcile` for every table that was woken.

    Args:
        reconcile: Called in one of the worker's threads, for one table never concurrently. An
            exception is logged and set on the wake-up's future; the worker continues. Only
            BuildInProgress is retried automatically, after the other process's build.
        queue: Maximum number of waiting tables.
        parallelism: Number of tables built at once.
        backoff: Rest of a table after failures.
        clock: Clock for the rest.
    """

    def __init__(
        self,
        reconcile: Reconcile,
        *,
        queue: int,
        parallelism: int = 1,
        backoff: Backoff = DEFAULT_BACKOFF,
        clock: Clock | None = None,
    ) -> None:
        self._reconcile = reconcile
        self._queue = queue
        self._backoff = backoff
        self._clock = clock if clock is not None else Clock()
        self._waiting: OrderedDict[str, Future[Build]] = OrderedDict()
        self._tables: dict[str, _Table] = {}
        self._changed = Condition()
        self._closing = False
        # Daemon threads: a hanging build must not keep the interpreter from exiting.
        self._threads = [
            Thread(target=self._run, name=f"hudi-index-worker-{number}", daemon=True)
            for number in range(parallelism)
        ]

    def start(self) -> None:
        """Starts the threads."""
        for thread in self._threads:
            thread.start()

    def wake(self, table: str) -> Future[Build]:
        """Requests a build of what is now due in `table`.

        Returns the future of a build that has not begun yet; all waiting wake-ups of this table
        share it. A running build does not count, since it may have read the timeline too early.

        Raises:
            CallbackRefused: too many tables wait, or the worker is closing.
        """
        with self._changed:
            if self._closing:
                raise CallbackRefused("The hook is closing.", remedy=_NOTHING_IS_LOST)
            future = self._waiting.get(table)
            if future is None:
                if len(self._waiting) >= self._queue:
                    raise CallbackRefused(
                        f"{self._queue} tables are already waiting.", remedy=_NOTHING_IS_LOST
                    )
                future = self._waiting[table] = Future()
                self._changed.notify_all()
        return future

    def close(self, *, finish_waiting: bool = True) -> None:
        """Refuses further wake-ups, finishes the running builds, and joins the threads.

        Args:
            finish_waiting: Whether to build the waiting tables too, without backoff; if not, their
                futures are cancelled.
        """
        with self._changed:
            self._closing = True
            if not finish_waiting:
                for future in self._waiting.values():
                    future.cancel()
                self._waiting.clear()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (woken := self._next()) is not None:
            self._serve(*woken)

    def _serve(self, table: str, future: Future[Build]) -> None:
        try:
            build = self._reconcile(table)
        except BuildInProgress as error:
            if self._put_back(table, future):
                log.info("Another process is building %s; retrying later. %s", table, error)
                return
            log.warning("The build for a wake-up of %s was not run: %s", table, error)
            future.set_exception(error)
        except IndexServiceError as error:
            log.error("The build for a wake-up of %s failed: %s", table, error)
            self._done(table, failed=True)
            future.set_exception(error)
        except BaseException as error:
            log.exception("The build for a wake-up of %s failed.", table)
            self._done(table, failed=True)
            future.set_exception(error)
        else:
            log.info(
                "%s: %s built in %.1f s.", table, counted(len(build.built), "entry"), build.seconds
            )
            self._done(table, failed=False, retry_at=build.retry_at)
            future.set_result(build)

    def _next(self) -> tuple[str, Future[Build]] | None:
        """The longest waiting table that may be built; None once the worker is closing and no table
        waits."""
        with self._changed:
            while True:
                self._wake_for_retries()
                for table in self._waiting:
                    if self._is_ready(table):
                        self._tables.setdefault(table, _Table()).running = True
                        return table, self._waiting.pop(table)
                if self._closing and not self._waiting:
                    return None
                self._clock.wait(self._changed, self._next_moment())

    def _wake_for_retries(self) -> None:
        for table, state in self._tables.items():
            if state.retry_at <= self._clock.now() and not self._closing:
                state.retry_at = float("inf")
                self._waiting.setdefault(table, Future())

    def _is_ready(self, table: str) -> bool:
        state = self._tables.get(table)
        if state is None:
            return True
        return not state.running and (self._closing or state.not_before <= self._clock.now())

    def _next_moment(self) -> float | None:
        """The next time at which a table is due without a notification; None if there is none. A
        closing worker always has none, since it neither rests nor retries."""
        if self._closing:
            return None
        moments = [
            min(state.not_before if table in self._waiting else float("inf"), state.retry_at)
            for table, state in self._tables.items()
            if not state.running
        ]
        first = min(moments, default=float("inf"))
        return None if first == float("inf") else first

    def _put_back(self, table: str, future: Future[Build]) -> bool:
        """Makes the wake-up wait for the end of another build. Returns False if the worker is
        closing and will not retry."""
        with self._changed:
            self._rest(table, failed=True)
            if self._closing:
                return False
            later = self._waiting.setdefault(table, future)
            self._changed.notify_all()
        if later is not future:  # a wake-up arrived during the attempt
            later.add_done_callback(lambda done: _copy(done, future))
        return True

    def _done(self, table: str, *, failed: bool, retry_at: datetime | None = None) -> None:
        with self._changed:
            self._rest(table, failed=failed)
            if retry_at is not None:
                seconds = (retry_at - datetime.now(UTC)).total_seconds()
                self._tables[table] = _Table(retry_at=self._clock.now() + max(0.0, seconds))
            self._changed.notify_all()

    def _rest(self, table: str, *, failed: bool) -> None:
        state = self._tables[table]
        if not failed:
            del self._tables[table]
            return
        state.running = False
        state.failures += 1
        state.not_before = self._clock.now() + self._backoff.seconds(state.failures)


def upkeep_worker(
    upkeep: Mapping[str, TableUpkeep], settings: HookSettings, *, queue: int
) -> Worker:
    """A worker that runs the upkeep of tables, by base path, as the section `hook` says."""
    return Worker(
        lambda uri: upkeep[uri].run(),
        queue=queue,
        parallelism=settings.parallelism,
        backoff=Backoff(settings.backoff_seconds, settings.backoff_max_seconds),
    )


def _copy(source: Future[Build], target: Future[Build]) -> None:
    """Copies the outcome of one future to another."""
    if source.cancelled():
        target.cancel()
        return
    error = source.exception()
    if error is not None:
        target.set_exception(error)
    else:
        target.set_result(source.result())
