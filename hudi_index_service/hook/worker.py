"""The worker: takes wake-ups and reconciles, in a few threads, never one table twice at once.

A wake-up says only that something may be due; what is due the build works out from the timeline.
So several wake-ups for a table that wait together are one. A table whose build broke off waits
before it is built again, the longer the more often that happened in a row; a wake-up meanwhile
waits with it and is not lost. Single base files that failed the build itself leaves alone for a
while (`Build.deferred`); the worker then wakes the table when their time has come.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Condition, Thread

from hudi_index_service.backoff import Backoff
from hudi_index_service.build.run import Build
from hudi_index_service.errors import BuildInProgress, CallbackRefused, IndexServiceError
from hudi_index_service.hook.clock import Clock

log = logging.getLogger(__name__)

DEFAULT_BACKOFF = Backoff(first=5.0, longest=300.0)

Reconcile = Callable[[str], Build]
"""Builds what is due for the table at a base path."""


@dataclass(slots=True)
class _Table:
    """What is known of a table that was woken, as long as it runs or rests.

    Attributes:
        failures: Builds that broke off in a row.
        not_before: The moment before which the table is not built again.
        retry_at: The moment at which base files that failed are due again.
    """

    running: bool = False
    failures: int = 0
    not_before: float = float("-inf")
    retry_at: float = float("inf")


class Worker:
    """Runs `reconcile` for every table that was woken.

    Args:
        reconcile: Called in a thread of the worker's, for one table never twice at once. What it
            raises is logged and set on the wake-up's future; the worker goes on. Only
            BuildInProgress is tried again by itself: the wake-up is served once the other process's
            build is over.
        queue: Tables that may wait at once.
        parallelism: Tables built at once.
        backoff: How long a table rests after failures.
        clock: By which it rests.
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
        # Daemons: a build that hangs must not keep an interpreter alive that was told to exit.
        self._threads = [
            Thread(target=self._run, name=f"hudi-index-worker-{number}", daemon=True)
            for number in range(parallelism)
        ]

    def start(self) -> None:
        """Starts the threads."""
        for thread in self._threads:
            thread.start()

    def wake(self, table: str) -> Future[Build]:
        """Asks for a build of what is due in `table` as of now.

        Returns the future of a build that has not begun yet, shared by all wake-ups that wait for
        this table. A table whose build is running waits for another one: the running one may have
        read the timeline too early.

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
                        f"{self._queue} tables wait to be built already.", remedy=_NOTHING_IS_LOST
                    )
                future = self._waiting[table] = Future()
                self._changed.notify_all()
        return future

    def close(self, *, finish_waiting: bool = True) -> None:
        """Takes no more wake-ups, finishes the builds that run, and joins the threads.

        Args:
            finish_waiting: Build the tables that wait, too, without backing off any more; else
                their futures are cancelled.
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
                log.info("%s is built by another process: tried again later. %s", table, error)
                return
            log.warning("The build that a wake-up of %s asked for was not made: %s", table, error)
            future.set_exception(error)
        except IndexServiceError as error:
            log.error("The build that a wake-up of %s asked for failed: %s", table, error)
            self._done(table, failed=True)
            future.set_exception(error)
        except BaseException as error:
            log.exception("The build that a wake-up of %s asked for failed.", table)
            self._done(table, failed=True)
            future.set_exception(error)
        else:
            log.info("%s: %d entries built in %.1f s.", table, len(build.built), build.seconds)
            self._done(table, failed=False, retry_at=build.retry_at)
            future.set_result(build)

    def _next(self) -> tuple[str, Future[Build]] | None:
        """The longest waiting table that may be built; None once the worker is closing and nothing
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
        for table, known in self._tables.items():
            if known.retry_at <= self._clock.now() and not self._closing:
                known.retry_at = float("inf")
                self._waiting.setdefault(table, Future())

    def _is_ready(self, table: str) -> bool:
        known = self._tables.get(table)
        if known is None:
            return True
        return not known.running and (self._closing or known.not_before <= self._clock.now())

    def _next_moment(self) -> float | None:
        """When there is something to do without a notification; None if only that helps, as is
        always so of a worker that is closing: it rests and retries no more."""
        if self._closing:
            return None
        moments = [
            min(known.not_before if table in self._waiting else float("inf"), known.retry_at)
            for table, known in self._tables.items()
            if not known.running
        ]
        first = min(moments, default=float("inf"))
        return None if first == float("inf") else first

    def _put_back(self, table: str, future: Future[Build]) -> bool:
        """Lets the wake-up wait for another build to be over. False, and the table done, when the
        worker is closing: there is no later."""
        with self._changed:
            self._rest(table, failed=True)
            if self._closing:
                return False
            later = self._waiting.setdefault(table, future)
            self._changed.notify_all()
        if later is not future:  # a wake-up came while it was tried
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
        known = self._tables[table]
        if not failed:
            del self._tables[table]
            return
        known.running = False
        known.failures += 1
        known.not_before = self._clock.now() + self._backoff.seconds(known.failures)


def _copy(done: Future[Build], waiting: Future[Build]) -> None:
    """Hands the outcome of one future on to another."""
    if done.cancelled():
        waiting.cancel()
        return
    error = done.exception()
    if error is not None:
        waiting.set_exception(error)
    else:
        waiting.set_result(done.result())


_NOTHING_IS_LOST = (
    "Nothing is lost: the next wake-up, or `hudi-index build <table>`, builds what is due."
)
