"""Prints text and progress on standard output and standard error."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from hudi_index_service.build.progress import BuildProgress
from hudi_index_service.cli.reports import progress_counts
from hudi_index_service.errors import IndexServiceError, UsageInvalid
from hudi_index_service.wording import one_line, printable

out = Console()
err = Console(stderr=True)


def print_utf8() -> None:
    """Has all that is printed encoded in UTF-8, whatever the locale: values may contain any
    character, and JSON is UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def say(text: str) -> None:
    """Prints a line: without markup in brackets, and without wrapping paths."""
    out.print(printable(text), highlight=False, markup=False, soft_wrap=True)


def complain(text: str) -> None:
    """Prints a line on standard error, in red on a terminal; see `say`."""
    err.print(printable(text), style="red", highlight=False, markup=False, soft_wrap=True)


def error_line(error: IndexServiceError) -> str:
    """The error in one line: code, message, and the remedy in terms of the command line."""
    return one_line(f"{error.code}: {error.message} {error.remedies.command}")


def usage_error(error: typer.TyperException) -> UsageInvalid:
    """Typer's error about a command line, with the command whose help tells more."""
    message = error.format_message().replace("Value error, ", "").rstrip(".")
    context = getattr(error, "ctx", None)
    command = "hudi-index" if context is None else context.command_path
    return UsageInvalid(f"{message}.", remedy=f"`{command} --help` lists what it takes.")


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[BuildProgress], None]]:
    """A progress bar on standard error that appears with the first progress. It advances by rows,
    also within a base file, or by base files if row counts are unknown."""
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
