"""One line of CSV (RFC 4180) that keeps NULL and the empty text apart, which Python's own writer
does not."""

import re
from collections.abc import Iterable

_QUOTED = re.compile(r'[",\r\n]')


def csv_line(values: Iterable[str | None]) -> str:
    """A line without its end: NULL is an empty field, an empty text is quoted."""
    return ",".join("" if value is None else _field(value) for value in values)


def _field(text: str) -> str:
    if text and not _QUOTED.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'
