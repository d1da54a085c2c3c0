"""`hudi-index watch`: no write option is needed, and a signal stops it in good order."""

import json
import re
import signal
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO

import pytest

from hudi_index_service import open_table
from hudi_index_service.config import Settings
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.fleet.forms.watch import watch
from tests.indexed import covered
from tests.programs import Running

PROGRAM = "from hudi_index_service.cli import main; main()"


@pytest.fixture
def table(indexed_table: Path) -> Path:
    return indexed_table


@pytest.mark.slow
def test_once_builds_what_is_due(table, cluster):
    assert watch([table], once=True)
    assert open_table(table).builds() == []

    cluster()

    assert watch([table], once=True, clean=True)
    assert covered(table) == 1


def test_once_uses_the_keys_and_fails_for_a_missing_table(table, tmp_path):
    keys = {"hoodie.index.columns": "ts", "hoodie.index.strategy": "all"}

    assert not watch([table, tmp_path / "none"], once=True, options=keys)

    assert [each.covered for each in open_table(table).status()] == [1, 1]


@pytest.fixture
def watching(running: Running) -> Running:
    """Starts `hudi-index watch`, which is killed when the test ends."""
    return partial(running, PROGRAM, "--log-level", "info", "watch")


def lines_until(stream: IO[str], text: str) -> str:
    """Reads up to the first line with `text`; fails if the stream ends first."""
    for line in stream:
        if text in line:
            return line
    raise AssertionError(f"no line with {text!r}")


@pytest.mark.slow
def test_process_follows_the_timeline_and_stops_on_sigterm(table, cluster, watching):
    process = watching(str(table), "--interval", "0.2")
    assert process.stdout.readline() == f"Watching {table} every 0.2 s.\n"

    cluster()

    lines_until(process.stderr, f"{table}: build finished: 1 built")
    assert covered(table) == 1
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert process.stdout.read() == "Stopping after the running builds.\n"


EVENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO|WARNING|ERROR) [\w.]+: (.+)\n")


@pytest.fixture
def no_table(tmp_path) -> Path:
    """A folder that is no table, with a path longer than any terminal is wide."""
    folder = tmp_path / "long-name" / ("x" * 120)
    folder.mkdir(parents=True)
    return folder


def test_log_has_one_line_per_event(no_table, watching):
    process = watching(str(no_table), "--once", COLUMNS="40")

    _, logged = process.communicate(timeout=60)

    events = [EVENT.fullmatch(f"{line}\n") for line in logged.splitlines()]
    assert all(events), logged
    assert any(f"NOT_A_HUDI_TABLE: {no_table}" in event[2] for event in events)


def test_log_can_be_json(no_table, watching):
    process = watching(str(no_table), "--interval", "60", HUDI_INDEX_LOGGING__FORMAT="json")

    started = json.loads(process.stdout.readline())
    failed = json.loads(lines_until(process.stderr, "NOT_A_HUDI_TABLE"))

    assert started["message"] == f"Watching {no_table} every 60 s."
    assert (started["level"], failed["level"]) == ("INFO", "ERROR")
    for event in (started, failed):
        assert set(event) == {"time", "level", "logger", "message"}
        assert datetime.fromisoformat(event["time"]).tzinfo is UTC
        assert event["logger"].startswith("hudi_index_service.")
    assert str(no_table) in failed["message"]
    process.send_signal(signal.SIGTERM)
    assert [json.loads(line)["level"] for line in process.communicate(timeout=60)[0].splitlines()]


def test_wrong_keys_and_intervals_are_refused_at_once(tmp_path):
    with pytest.raises(ConfigInvalid, match=r"hoodie\.index\.colums"):
        watch([tmp_path], options={"hoodie.index.colums": "a"})
    with pytest.raises(ConfigInvalid, match=r"interval=0.* is not positive"):
        watch([tmp_path], interval=0, settings=Settings())
