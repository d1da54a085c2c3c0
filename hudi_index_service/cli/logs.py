"""The commands' log on standard error: one line per event, regardless of the terminal's width."""

import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal

from hudi_index_service.cli.console import say
from hudi_index_service.wording import printable

Format = Literal["text", "json"]


class EventFormatter(logging.Formatter):
    """An event as one line: time (ISO 8601, UTC), level, logger, message and, if there was an
    exception, its trace.

    Args:
        kind: ``text``, with control characters in Python's escapes; or ``json``, an object with the
            keys `time`, `level`, `logger`, `message` and optionally `exception`.
    """

    def __init__(self, kind: Format) -> None:
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
        if record.exc_info and record.exc_info[0] is not None:
            event["exception"] = self.formatException(record.exc_info)
        if self._kind == "json":
            return json.dumps(event)
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


def configure_logging(level: str, kind: Format) -> None:
    """Logs to standard error, from `level` upwards."""
    handler = _StandardError()
    handler.setFormatter(EventFormatter(kind))
    logging.basicConfig(level=level, handlers=[handler])


def announcer(kind: Format) -> Callable[[str], None]:
    """A function that prints a daemon's messages on standard output, as text or JSON events."""
    if kind == "text":
        return say
    formatter = EventFormatter(kind)

    def announce(text: str) -> None:
        fields = {"name": "hudi_index_service.server", "levelname": "INFO", "msg": text}
        print(formatter.format(logging.makeLogRecord(fields)), flush=True)

    return announce
