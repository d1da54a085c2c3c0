"""Sentences and progress, on standard output and standard error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

out = Console()
err = Console(stderr=True)


def say(text: str) -> None:
    """Prints text as it is: no brackets taken for markup, no path broken at the console's width."""
    out.print(text, highlight=False, markup=False, soft_wrap=True)


def complain(text: str) -> None:
    """Prints text as it is on standard error, in red on a terminal."""
    err.print(text, style="red", highlight=False, markup=False, soft_wrap=True)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error that appears with the first news."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err,
        transient=True,
    )
    with bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
