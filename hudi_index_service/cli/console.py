"""What commands print besides their results: lines on standard output and standard error, and the
log, one line per event, regardless of the terminal's width."""

import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from io import TextIOWrapper
from typing import Literal

import typer
from rich.console import Console

from hudi_index_service.errors import IndexServiceError, UsageInvalid
from hudi_index_service.wording import one_line, printable

out = Console()
err = Console(stderr=True)

LogFormat = Literal["text", "json"]


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
    return one_line(error.for_command)


def usage_error(error: typer.TyperException) -> UsageInvalid:
    """Typer's error about a command line, with the command whose help tells more."""
    message = error.format_message().replace("Value error, ", "").rstrip(".")
    context = getattr(error, "ctx", None)
    command = "hudi-index" if context is None else context.command_path
    return UsageInvalid(f"{message}.", remedy=f"`{command} --help` lists what it takes.")


_FURTHER_KEYS = ("table", "build", "trigger", "trace")


class EventFormatter(logging.Formatter):
    """An event as one line: time (ISO 8601, UTC), level, logger, message and, if there was an
    exception, its trace.

    Args:
        kind: ``text``, with control characters in Python's escapes; or ``json``, an object with the
            keys `time`, `level`, `logger`, `message` and optionally `table`, `build`, `trigger` and
            `trace`, as the event's ``extra`` has them, and `exception`.
    """

    def __init__(self, kind: LogFormat) -> None:
        super().__init__()
        self._kind = kind

    def format(self, record: logging.LogRecord) -> str:
        """The line, without the line break."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        event = {
            "time": at.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        further = {key: str(value) for key in _FURTHER_KEYS if (value := record.__dict__.get(key))}
        if record.exc_info and record.exc_info[0] is not None:
            event["exception"] = self.formatException(record.exc_info)
        if self._kind == "json":
            return json.dumps(event | further)
        line = "{time} {level} {logger}: {message}".format(**event)
        if "exception" in event:
            line = f"{line}\n{event['exception']}"
        return printable(line)


class _StandardError(logging.Handler):
    """Writes to the current `sys.stderr`, since a progress bar replaces it."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()
        except (OSError, ValueError):  # closed, or its reader has exited
            self.handleError(record)


def configure_logging(level: str, kind: LogFormat) -> None:
    """Logs to standard error, from `level` upwards."""
    handler = _StandardError()
    handler.setFormatter(EventFormatter(kind))
    logging.basicConfig(level=level, handlers=[handler])


def announcer(kind: LogFormat) -> Callable[[str], None]:
    """A function that prints a daemon's messages on standard output, as text or JSON events."""
    if kind == "text":
        return say
    formatter = EventFormatter(kind)

    def announce(text: str) -> None:
        fields = {"name": "hudi_index_service.server", "levelname": "INFO", "msg": text}
        print(formatter.format(logging.makeLogRecord(fields)), flush=True)

    return announce
