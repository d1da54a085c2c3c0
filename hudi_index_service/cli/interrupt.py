"""Ctrl-C during a build: entries in progress are finished, and the record lists those built."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hudi_index_service import IndexedTable
from hudi_index_service.build.run import Progress
from hudi_index_service.cli.console import complain
from hudi_index_service.cli.reports import ended_line

INTERRUPTED = 130  # the exit status of shells for SIGINT


@contextmanager
def ends_orderly(table: IndexedTable) -> Iterator[Progress]:
    """A progress callback for a build of the table.

    The first Ctrl-C prints the remaining work at once, ends the build when the base files in
    progress are finished, and prints the result. The second ends the process at once.

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
        self._done = self._total = 0
        self._has_begun = False

    def progress(self, done: int, total: int) -> None:
        self._has_begun, self._done, self._total = True, done, total
        if self._interrupted:
            raise KeyboardInterrupt

    def interrupt(self) -> None:
        if self._interrupted:
            complain("Ended at once; `hudi-index clean` removes unfinished files.")
            os._exit(INTERRUPTED)
        self._interrupted = True
        if not self._has_begun:
            complain("Stopping.")
            raise KeyboardInterrupt
        complain(
            f"Stopping: {self._done} of {self._total} entries are done. Those in progress are "
            "finished first; the next build continues with the rest. Ctrl-C again ends at once."
        )


@contextmanager
def _on_sigint(react: Callable[[], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # Python sets signal handlers only in the main thread
        return
    before = signal.signal(signal.SIGINT, lambda number, frame: react())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)
