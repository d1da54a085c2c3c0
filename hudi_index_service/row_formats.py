"""Rows as text for programs and notebooks: JSON, CSV and HTML.

JSON is what Spark's ``to_json`` writes, so ``hudi-index sql`` prints it with and without Spark:
decimals are numbers with all their digits, a map is an object, bytes are base64, NaN and infinities
are texts. Times are ISO 8601 with six digits (Spark's own default has three): with ``Z`` if they
are moments, without a zone if they are wall-clock times.

CSV (RFC 4180) distinguishes NULL from the empty text, unlike Python's own writer. In HTML all
values are escaped.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from html import escape
from math import isfinite, isnan
from typing import Any

import numpy as np
import pyarrow as pa

SPARK_OPTIONS = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][XXX]",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]",
}
"""Options with which Spark's ``to_json`` writes the same."""

_QUOTED_IN_CSV = re.compile(r'[",\r\n]')


def json_text(value: Any) -> str:
    """A value as JSON; a type that JSON and Spark lack as its text."""
    if isinstance(value, Mapping):
        fields = (f"{_text(str(key))}: {json_text(each)}" for key, each in value.items())
        return f"{{{', '.join(fields)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(json_text, value))}]"
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    return _text(plain(value))


def plain(value: Any) -> Any:
    """A value that is not nested as a number, a text, a truth value or None."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else _special(value)
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return value.isoformat("T", "microseconds")
        return value.astimezone(UTC).isoformat("T", "microseconds").replace("+00:00", "Z")
    return str(value)


def plain_tree(value: Any, text: Callable[[str], str] = str) -> Any:
    """A value that may be nested, for JSON: dictionaries, lists, and what `plain` returns.

    Args:
        text: What becomes of each text.
    """
    if isinstance(value, Mapping):
        return {text(str(key)): plain_tree(each, text) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_tree(each, text) for each in value]
    value = plain(value)
    return text(value) if isinstance(value, str) else value


def cell_text(value: Any) -> str:
    """A value in a cell of a table or of CSV: text unchanged, a list, a map or a struct as JSON."""
    is_nested = isinstance(value, Mapping | list | tuple)
    text = None if is_nested else plain(value)
    return text if isinstance(text, str) else json_text(value)


def python_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """The rows of batches, one batch at a time, as values for `json_text`: a map is a dict, and a
    float of 32 bits has the digits that Spark prints."""
    for batch in batches:
        columns = [
            map(_converter(column.type), column.to_pylist())
            if _is_converted(column.type)
            else column.to_pylist()
            for column in batch.columns
        ]
        yield from zip(*columns, strict=True)


def _is_converted(type: pa.DataType) -> bool:
    if pa.types.is_map(type) or pa.types.is_float32(type):
        return True
    return any(_is_converted(type.field(number).type) for number in range(type.num_fields))


def _converter(type: pa.DataType) -> Callable[[Any], Any]:
    """A function from Arrow's Python value of a type to the value to print."""
    if pa.types.is_float32(type):
        return _unless_null(lambda value: float(str(np.float32(value))))
    if pa.types.is_map(type):
        item = _converter(type.item_type)
        return _unless_null(lambda value: {key: item(each) for key, each in value})
    if pa.types.is_struct(type):
        fields = {each.name: _converter(each.type) for each in type}
        return _unless_null(lambda value: {name: fields[name](value[name]) for name in fields})
    if type.num_fields == 1:  # the kinds of lists
        element = _converter(type.field(0).type)
        return _unless_null(lambda value: list(map(element, value)))
    return lambda value: value


def _unless_null(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else convert(value)


def _special(value: float) -> str:
    return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def csv_line(values: Iterable[str | None]) -> str:
    """A line without its line end: NULL is an empty field, an empty text is quoted."""
    return ",".join("" if value is None else _csv_field(value) for value in values)


def _csv_field(text: str) -> str:
    if text and not _QUOTED_IN_CSV.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'


def html_lines(text: str) -> str:
    """Lines of text with their spaces."""
    return f"<pre>{escape(text)}</pre>"


def html_table(names: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """A table; lists are joined by commas."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_html_text(value))}</td>' for value in row)}</tr>"
        for row in rows
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _html_text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)
