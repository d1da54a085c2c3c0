"""Ctrl-C while a build runs: what was begun is finished, and the record says what was built."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hudi_index_service import IndexedTable
from hudi_index_service.build.run import Progress
from hudi_index_service.cli.console import complain
from hudi_index_service.reports import ended_line

INTERRUPTED = 130  # the exit status, as shells give it for SIGINT


@contextmanager
def ends_orderly(table: IndexedTable) -> Iterator[Progress]:
    """A progress callback for a build of the table. At the first Ctrl-C what remains is printed at
    once, and the build ends as soon as the base files that were begun are finished; then how it
    ended. At the second the process ends, as if it had been killed.

    Raises:
        KeyboardInterrupt: the build was interrupted.
    """
    build = _Interruptible()
    with _on_sigint(build.interrupt):
        try:
            yield build.progress
        except KeyboardInterrupt:
            for record in table.builds(limit=1):
                if record.started.get("pid") == os.getpid():
                    complain(ended_line(record))
            raise


class _Interruptible:
    def __init__(self) -> None:
        self._interrupted = False
        self._done = self._all = 0
        self._has_begun = False

    def progress(self, done: int, all: int) -> None:
        self._has_begun, self._done, self._all = True, done, all
        if self._interrupted:
            raise KeyboardInterrupt

    def interrupt(self) -> None:
        if self._interrupted:
            complain("Ended at once; `hudi-index clean` removes what is half done.")
            os._exit(INTERRUPTED)
        self._interrupted = True
        if not self._has_begun:
            complain("Stopping.")
            raise KeyboardInterrupt
        complain(
            f"Stopping: {self._done} of {self._all} entries are done. Those that were begun are "
            "finished first; the next build goes on with the rest. Ctrl-C again ends at once."
        )


@contextmanager
def _on_sigint(react: Callable[[], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # where Python lets nobody set what a signal does
        return
    before = signal.signal(signal.SIGINT, lambda number, frame: react())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)
