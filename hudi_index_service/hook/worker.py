"""The worker: takes wake-ups and reconciles, one table at a time, in a thread of its own.

A wake-up says only that something may be due; what is due the build works out from the timeline.
So several wake-ups for a table that wait together are one.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from threading import Condition, Thread

from hudi_index_service.build.run import Build
from hudi_index_service.errors import CallbackRefused, IndexServiceError

log = logging.getLogger(__name__)

Reconcile = Callable[[str], Build]
"""Builds what is due for the table at a base path."""


class Worker:
    """Runs `reconcile` for every table that was woken.

    Args:
        reconcile: Called in the worker's thread, never twice at once. What it raises is logged and
            set on the wake-up's future; the worker goes on.
        queue: Tables that may wait at once.
    """

    def __init__(self, reconcile: Reconcile, *, queue: int) -> None:
        self._reconcile = reconcile
        self._queue = queue
        self._waiting: OrderedDict[str, Future[Build]] = OrderedDict()
        self._changed = Condition()
        self._closing = False
        # A daemon: a build that hangs must not keep an interpreter alive that was told to exit.
        self._thread = Thread(target=self._run, name="hudi-index-worker", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

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

    def close(self) -> None:
        """Takes no more wake-ups, finishes those that wait, and joins the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while (woken := self._next()) is not None:
            table, future = woken
            try:
                build = self._reconcile(table)
            except IndexServiceError as error:
                log.error("The build that a commit of %s asked for failed: %s", table, error)
                future.set_exception(error)
            except BaseException as error:
                log.exception("The build that a commit of %s asked for failed.", table)
                future.set_exception(error)
            else:
                log.info("%s: %d entries built in %.1f s.", table, len(build.built), build.seconds)
                future.set_result(build)

    def _next(self) -> tuple[str, Future[Build]] | None:
        """The longest waiting table; None once the worker is closing and nothing waits."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            return self._waiting.popitem(last=False) if self._waiting else None


_NOTHING_IS_LOST = (
    "Nothing is lost: the next wake-up, or `hudi-index build <table>`, builds what is due."
)
