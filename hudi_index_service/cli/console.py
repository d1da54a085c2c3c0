"""What commands print: text as it is, rows as tables, JSON, progress."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from hudi_index_service.cli.arguments import Output

out = Console()
err = Console(stderr=True)


def say(text: str) -> None:
    """Prints text as it is: no brackets taken for markup, no path broken at the console's width."""
    out.print(text, highlight=False, markup=False, soft_wrap=True)


def say_all(lines: Iterable[str]) -> None:
    """Prints one after the other."""
    for line in lines:
        say(line)


def print_json(content: dict[str, Any]) -> None:
    """Prints one JSON object over several lines."""
    print(json.dumps(content, indent=1, ensure_ascii=False))


def print_rows(rows: list[dict[str, Any]], output: Output) -> None:
    """Prints a table, or a JSON array of objects; nothing of no rows, unless as JSON."""
    if output is Output.JSON:
        out.print_json(json.dumps(rows, default=str))
        return
    if not rows:
        return
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*("NULL" if value is None else str(value) for value in row.values()))
    out.print(table, markup=False)


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
