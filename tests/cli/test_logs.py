"""Logs: one line per event."""

import json
import logging
import sys

import pytest

from hudi_index_service.cli.console import EventFormatter


def logged(message: str, *arguments: object) -> logging.LogRecord:
    """An event in the first second of 2026, with the exception being handled, if any."""
    error = sys.exc_info()
    record = logging.LogRecord(
        "hudi_index_service.x", logging.WARNING, "", 0, message, arguments, error
    )
    record.created = 1767225600.5
    return record


def test_an_event_as_text() -> None:
    line = EventFormatter("text").format(logged("%s of %d: %s", "/a b/[1]é", 2, "x" * 200))
    assert line == (
        f"2026-01-01T00:00:00.500Z WARNING hudi_index_service.x: /a b/[1]é of 2: {'x' * 200}"
    )


def test_an_event_with_line_ends_is_one_line() -> None:
    """A name with line ends or escape codes can neither fake an event nor colour the terminal."""
    line = EventFormatter("text").format(logged("a\nb\r\x1b[31m\x85\u2028c"))
    assert line.endswith(r": a\nb\r\x1b[31m\x85\u2028c")


def test_an_event_as_json() -> None:
    assert json.loads(EventFormatter("json").format(logged("a\n%s", "é\udc80"))) == {
        "time": "2026-01-01T00:00:00.500Z",
        "level": "WARNING",
        "logger": "hudi_index_service.x",
        "message": "a\né\udc80",
    }


@pytest.mark.parametrize("kind", ["text", "json"])
def test_a_traceback_is_part_of_the_line(kind: str) -> None:
    try:
        raise ZeroDivisionError("by nothing")
    except ZeroDivisionError:
        line = EventFormatter(kind).format(logged("it failed"))  # type: ignore[arg-type]

    assert len(line.splitlines()) == 1
    assert line.index("it failed") < line.index("Traceback") < line.index("by nothing")
