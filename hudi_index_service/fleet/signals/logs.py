"""The service's log at level info: a line for each change, none for each look, and what is said
again and again is counted.

Lines carry the keys `table`, `build`, `trigger` and `trace` as far as they are known, by ``extra``.
"""

import logging
from dataclasses import dataclass
from threading import Lock

from hudi_index_service.fleet.observation import Observation
from hudi_index_service.fleet.signals.seen import Change

log = logging.getLogger(__name__)

_MOST_TABLES = 10_000


def log_change(observation: Observation, change: Change) -> None:
    """Logs the reasons for attention that an observation made appear and go, a line each."""
    extra = {"table": observation.policy.uri}
    name = observation.policy.name
    for reason in change.appeared:
        log.warning(
            "%s needs attention (%s, severity %d): %s Remedy: %s",
            *(name, reason.code, reason.severity, reason.words, reason.remedy),
            extra=extra,
        )
    for reason in change.gone:
        log.info("%s: %s has gone.", name, reason.code, extra=extra)


@dataclass(slots=True)
class _Said:
    line: tuple[str, int, str]
    times: int = 1


class Repeats(logging.Filter):
    """Lets a line about a table through once, and again when it has come 10, 100, 1,000, … times in
    a row, with that number. The next other line about the table tells how often it came. Lines
    without the key `table` all pass.

    Add it to a handler: a logger's filters do not see the lines of loggers below it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[str, _Said] = {}
        self._lock = Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line passes; a number of repeats is added to its message."""
        table = getattr(record, "table", None)
        if not isinstance(table, str):
            return True
        message = record.getMessage()
        line = record.name, record.levelno, message
        with self._lock:
            last = self._said.get(table)
            if last is None or last.line != line:
                if len(self._said) >= _MOST_TABLES:
                    self._said.clear()  # of tables that left the fleet; some lines come once more
                self._said[table] = _Said(line)
                if last is not None and last.times > 1:
                    _add(record, f"(The line before came {last.times:,} times.)")
                return True
            last.times += 1
            times = last.times
        is_round = str(times).rstrip("0") == "1"
        if is_round:
            _add(record, f"({times:,} times in a row.)")
        return is_round


def count_repeats() -> None:
    """Has the handlers of this process's log count what is said again and again."""
    for handler in logging.getLogger().handlers:
        if not any(isinstance(each, Repeats) for each in handler.filters):
            handler.addFilter(Repeats())


def _add(record: logging.LogRecord, words: str) -> None:
    record.msg, record.args = f"{record.getMessage()} {words}", ()
