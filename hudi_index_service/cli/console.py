"""Sentences and progress, on standard output and standard error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from hudi_index_service.build.progress import BuildProgress
from hudi_index_service.reports import progress_counts

out = Console()
err = Console(stderr=True)


def say(text: str) -> None:
    """Prints text as it is: no brackets taken for markup, no path broken at the console's width."""
    out.print(text, highlight=False, markup=False, soft_wrap=True)


def complain(text: str) -> None:
    """Prints text as it is on standard error, in red on a terminal."""
    err.print(text, style="red", highlight=False, markup=False, soft_wrap=True)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[BuildProgress], None]]:
    """A progress bar on standard error that appears with the first news. It moves with the rows,
    within a base file as well, or with the base files where nothing is known of rows."""
    bar = Progress(
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
