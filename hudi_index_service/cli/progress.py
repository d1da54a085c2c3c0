"""A build on the command line: its progress bar, and its orderly end after Ctrl-C or SIGTERM, when
entries in progress are finished, and the record lists those built."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import typer
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from hudi_index_service import IndexedTable
from hudi_index_service.build.run import Progress
from hudi_index_service.cli.console import complain, err
from hudi_index_service.cli.reports import ended_line, progress_counts
from hudi_index_service.index.metadata.build_records import BuildProgress
from hudi_index_service.process import on_signals

# The exit statuses of shells for SIGINT and SIGTERM.
INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[BuildProgress], None]]:
    """A progress bar on standard error that appears with the first progress. It advances by rows,
    also within a base file, or by base files if row counts are unknown."""
    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[counts]}"),
        TimeElapsedColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )
    with bar:
        task = bar.add_task(what, total=None, counts="")

        def show(now: BuildProgress) -> None:
            done, total = (
                (now.files_done, now.files) if now.rows is None else (now.rows_done, now.rows)
            )
            bar.update(task, completed=done, total=total, counts=progress_counts(now))

        yield show


@contextmanager
def ends_orderly(table: IndexedTable) -> Iterator[Progress]:
    """A progress callback for a build of the table.

    The first Ctrl-C or SIGTERM prints the remaining work at once, ends the build when the base
    files in progress are finished, and prints the result. The second ends the process at once.

    Raises:
        KeyboardInterrupt: the build was interrupted by Ctrl-C.
        typer.Exit: it was terminated, with the status `TERMINATED`.
    """
    build = _Interruptible()
    with on_signals(build.interrupt):
        try:
            yield build.progress
        except KeyboardInterrupt:
            for record in table.builds(limit=1):
                if record.started.get("pid") == os.getpid():
                    complain(ended_line(record))
            if build.signal == signal.SIGTERM:
                raise typer.Exit(TERMINATED) from None
            raise


class _Interruptible:
    def __init__(self) -> None:
        self.signal: int | None = None  # the first that arrived
        self._done = self._total = 0
        self._has_begun = False

    def progress(self, done: int, total: int) -> None:
        self._has_begun, self._done, self._total = True, done, total
        if self.signal is not None:
            raise KeyboardInterrupt

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            complain("Ended at once; `hudi-index clean` removes unfinished files.")
            os._exit(128 + number)
        self.signal = number
        if not self._has_begun:
            complain("Stopping.")
            raise KeyboardInterrupt
        complain(
            f"Stopping: {self._done} of {self._total} entries are done. Those in progress are "
            "finished first; the next build continues with the rest. Ctrl-C again ends at once."
        )
