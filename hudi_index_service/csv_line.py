"""One line of CSV (RFC 4180) that distinguishes NULL from the empty text, unlike Python's own
writer."""

import re
from collections.abc import Iterable

_QUOTED = re.compile(r'[",\r\n]')


def csv_line(values: Iterable[str | None]) -> str:
    """A line without its line end: NULL is an empty field, an empty text is quoted."""
    return ",".join("" if value is None else _field(value) for value in values)


def _field(text: str) -> str:
    if text and not _QUOTED.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'
