"""The log has a line for each change, and counts what is said again and again."""

import json
import logging
from collections.abc import Iterator

import pytest

from hudi_index_service.cli.console import EventFormatter
from hudi_index_service.fleet.observation import Observation
from hudi_index_service.fleet.signals.logs import Repeats, count_repeats, log_change
from hudi_index_service.fleet.signals.seen import Seen
from tests.fleet.statuses import NOW, ago, index, policy, status


class Lines(logging.Handler):
    """Keeps what it is given, formatted as JSON."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(EventFormatter("json"))
        self.addFilter(Repeats())
        self.events: list[dict[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.events.append(json.loads(self.format(record)))

    @property
    def messages(self) -> list[str]:
        """The messages so far."""
        return [each["message"] for each in self.events]


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler, logger = Lines(), logging.getLogger("hudi_index_service.fleet")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


def say(message: str, *arguments: object, table: str | None = "t", **keys: str) -> None:
    """Logs a line of the fleet."""
    extra = {**keys, **({} if table is None else {"table": table})}
    logging.getLogger("hudi_index_service.fleet.any").info(message, *arguments, extra=extra)


def test_looks_that_change_nothing_are_not_logged(lines: Lines) -> None:
    seen = Seen()

    for minute in range(10):
        damaged = 2 if 2 <= minute < 7 else 0
        found = status(index(100, 100 - damaged, damaged=damaged), at=-minute)
        look = Observation(policy("ledger"), ago(-minute), found)
        log_change(look, seen.observe(look, look.at or NOW))

    assert lines.messages == [
        "ledger needs attention (damaged_entries, severity 1): The entries of 2 base files are "
        "damaged. Remedy: hudi-index verify s3://lake/ledger --repair",
        "ledger: damaged_entries has gone.",
    ]
    assert {each["table"] for each in lines.events} == {"s3://lake/ledger"}


def test_a_line_that_is_repeated_is_counted(lines: Lines) -> None:
    for _ in range(120):
        say("build %s", "failed")
    say("build %s", "finished")

    assert lines.messages == [
        "build failed",
        "build failed (10 times in a row.)",
        "build failed (100 times in a row.)",
        "build finished (The line before came 120 times.)",
    ]


def test_lines_of_other_tables_do_not_end_a_row(lines: Lines) -> None:
    for _ in range(3):
        say("failed", table="a")
        say("failed", table="b")

    assert lines.messages == ["failed", "failed"]


def test_lines_without_a_table_all_pass(lines: Lines) -> None:
    for _ in range(3):
        say("started", table=None)

    assert lines.messages == ["started"] * 3


def test_handlers_of_the_process_count_repeats_once() -> None:
    handler, root = Lines(), logging.getLogger()
    root.addHandler(handler)
    try:
        count_repeats()
        count_repeats()
    finally:
        root.removeHandler(handler)
        for each in root.handlers:
            each.filters = [one for one in each.filters if not isinstance(one, Repeats)]
    assert sum(isinstance(each, Repeats) for each in handler.filters) == 1


def test_keys_are_fields_of_the_event(lines: Lines) -> None:
    say("built", build="000012", trigger="poll", trace="4bf9")

    (event,) = lines.events
    assert event.keys() - {"time", "level", "logger", "message"} == {
        "table",
        "build",
        "trigger",
        "trace",
    }
    assert (event["table"], event["build"], event["trace"]) == ("t", "000012", "4bf9")
