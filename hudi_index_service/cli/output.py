"""Printing: each value of ``--output`` means the same for every command.

A command gives rows (query, search, locate, show, sql) or a report (all others).

=====  ================================  ==========================================================
value  rows                              a report
=====  ================================  ==========================================================
text   one table, then the row count     sentences
json   one object per line               one object
csv    a line of names, a line per row   the same for the items that it lists, such as its entries
=====  ================================  ==========================================================

Without ``--output``, a terminal gets text. Elsewhere rows are JSON lines, and a report is text.
All is printed in UTF-8. No value is truncated: a table folds long values on a terminal; elsewhere
lines have any length.
"""

import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from itertools import islice
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hudi_index_service.row_formats import cell_text, csv_line, json_text, plain_tree
from hudi_index_service.wording import counted, printable

_LEAST_COLUMN = 8
"""Minimum characters per column; in a narrower table each row is printed as a list of values."""

# What JSON need not escape, but controls a terminal or is no character.
_UNPRINTABLE = re.compile("[\x7f-\x9f\ud800-\udfff]")


class Format(Enum):
    """The values of ``--output``."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


def print_rows(
    format: Format, names: Sequence[str], rows: Iterable[Sequence[Any]], *, most: int | None = None
) -> None:
    """Prints rows.

    Args:
        names: Names of the columns.
        rows: Values in the columns' order; consumed one by one, except for text.
        most: Maximum number of rows in text, which then states that there are more.
    """
    match format:
        case Format.TEXT:
            _print_table(names, rows, most)
        case Format.JSON:
            for row in rows:
                print(_printable_json(json_text(dict(zip(names, row, strict=True)))))
        case Format.CSV:
            # On a terminal, control characters are escaped.
            shown = str if terminal_width() is None else printable
            print(csv_line(map(shown, names)))
            for row in rows:
                print(csv_line(None if value is None else shown(_text(value)) for value in row))


def print_report(
    format: Format | None,
    content: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    lines: Iterable[str],
    names: Sequence[str] = (),
    items: Iterable[Mapping[str, Any]] = (),
) -> None:
    """Prints a report.

    Args:
        format: By default text.
        content: The whole report; for several things, a list of theirs.
        lines: The report as text, line by line.
        names, items: The list in the report, as rows; by default the report is the only row.
    """
    match format:
        case Format.JSON:
            text = json.dumps(plain_tree(content), indent=1, ensure_ascii=False)
            print(_printable_json(text))
        case Format.CSV:
            if not names:
                assert isinstance(content, Mapping), "a list has names and items"
                names, items = tuple(content), [content]
            print_rows(format, names, ([item.get(name) for name in names] for item in items))
        case _:
            for line in lines:
                print(printable(line))


def format_of_rows(format: Format | None) -> Format:
    """The format in ``--output``, or the default for a command that prints rows."""
    return format or (Format.JSON if terminal_width() is None else Format.TEXT)


def terminal_width() -> int | None:
    """Columns of the terminal; None if standard output is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _print_table(names: Sequence[str], rows: Iterable[Sequence[Any]], most: int | None) -> None:
    first_rows = list(islice(rows, None if most is None else most + 1))
    for line in table_lines(names, first_rows[:most]):
        print(line)
    if most is not None and len(first_rows) > most:
        print(
            f"The first {most:,} rows; there are more: --limit sets the number, --output json or "
            "csv prints all."
        )
    else:
        print(counted(len(first_rows), "row"))


def table_lines(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    """The lines of a table; on a terminal that is too narrow, each row is a list of its values."""
    cells = [[_cell(value) for value in row] for row in rows]
    width = terminal_width()
    if width is not None and len(names) * (_LEAST_COLUMN + 3) + 1 > width:
        yield from _lists(names, cells)
        return
    table = Table()
    for name in names:
        table.add_column(Text(printable(name)), overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    console = Console(width=width or sys.maxsize, color_system=None, highlight=False)
    for line in console.render_lines(table, pad=False):
        yield "".join(segment.text for segment in line).rstrip()


def _lists(names: Sequence[str], cells: Sequence[Sequence[str]]) -> Iterator[str]:
    longest = max(map(len, names))
    for number, row in enumerate(cells, 1):
        yield f"--- row {number}"
        for name, value in zip(names, row, strict=True):
            yield f"{printable(name):<{longest}}  {value}"


def _cell(value: object) -> str:
    return "NULL" if value is None else printable(_text(value))


def _text(value: object) -> str:
    """A value in a cell; times as Python prints them."""
    return str(value) if isinstance(value, datetime) else cell_text(value)


def _printable_json(text: str) -> str:
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
