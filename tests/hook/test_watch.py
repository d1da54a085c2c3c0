"""Polling: no write option is needed, failures back off, and a signal stops it in good order."""

import json
import re
import signal
from collections.abc import Iterator
from concurrent.futures import Future
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any

import pytest

from hudi_index_service import open_table
from hudi_index_service.build.outcomes import Build
from hudi_index_service.config import Settings
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.hook.table_upkeep import TableUpkeep
from hudi_index_service.hook.watch import Poll, watch
from hudi_index_service.hook.worker import Worker
from hudi_index_service.storage.waiting import Backoff
from tests.hook.manual_clock import ManualClock
from tests.indexed import covered
from tests.programs import Running

PROGRAM = "from hudi_index_service.cli import main; main()"


@pytest.fixture
def table(indexed_table: Path) -> Path:
    return indexed_table


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
def requested(monkeypatch: pytest.MonkeyPatch) -> list["Future[Build]"]:
    """The builds that workers were asked for."""
    found = []
    wake = Worker.wake

    def waking(self: Worker, uri: str) -> "Future[Build]":
        found.append(wake(self, uri))
        return found[-1]

    monkeypatch.setattr(Worker, "wake", waking)
    return found


@pytest.fixture
def poll(table) -> Iterator[tuple[Poll, TableUpkeep, ManualClock]]:
    """A poll that a test triggers, with a clock that the test moves."""
    clock = ManualClock()
    upkeep = TableUpkeep(table, defer_failed=True)
    runs = Worker(lambda _: upkeep.run(), queue=1, backoff=Backoff(10.0, 60.0), clock=clock)
    runs.start()
    yield Poll({upkeep.uri: upkeep}, runs), upkeep, clock
    runs.close()
    upkeep.close()


def test_polling_builds_only_after_a_change(table, cluster, poll, requested):
    polling, upkeep, _ = poll
    polling.look()
    (first,) = requested
    first.result(timeout=120)

    polling.look()
    assert requested == [first]

    cluster()
    polling.look()
    _, second = requested
    assert len(second.result(timeout=120).built) == 1
    before = upkeep.version()
    open_table(table).create_index("by_ts", ["ts"])  # no commit, but a change
    assert upkeep.version() != before
    polling.look()
    assert len(requested) == 3


def test_failing_build_is_retried_with_backoff(table, cluster, poll, requested):
    polling, _, clock = poll
    builds = table / ".hoodie" / ".index" / "_service" / "builds"
    builds.write_text("A file stands where the build's record has to go.")
    cluster()
    polling.look()
    (first,) = requested
    assert first.exception(timeout=120) is not None
    builds.unlink()

    polling.look()
    clock.wait_until_a_thread_waits_for(10.0)
    polling.look()  # adds no wake-up
    _, second = requested
    assert not second.done()
    clock.advance(10.0)

    assert len(second.result(timeout=120).built) == 1
    assert polling.is_settled()


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


def test_process_follows_the_timeline_and_stops_on_sigterm(table, cluster, watching):
    process = watching(str(table), "--interval", "0.2")
    assert process.stdout.readline() == f"Watching {table} every 0.2 s.\n"
    lines_until(process.stderr, "0 entries built")

    cluster()

    lines_until(process.stderr, "1 entry built")
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


def test_at_its_start_it_says_what_would_never_be_built(table, golden, tmp_path, caplog):
    undefined = golden("two_hundred_rows").put(tmp_path / "undefined")

    def warned(path: Path, **options: Any) -> list[str]:
        caplog.clear()
        watch([path], once=True, **options)
        idle = [each for each in caplog.records if each.name.endswith("hook.daemon")]
        return [each.getMessage() for each in idle]

    (not_due,) = warned(table)
    assert not_due.startswith(f"{table}: Not indexed and not due: 1 of 1 base files for by_sender")
    assert f"`hudi-index build {table} --strategy all` indexes them." in not_due
    (no_index,) = warned(undefined)
    assert no_index.startswith(f"{undefined}: The table has no index: `hudi-index create ")
    (typo,) = warned(tmp_path / "typo")
    assert typo.startswith(f"{tmp_path / 'typo'}: TABLE_NOT_FOUND: ")
    (switched_off,) = warned(table, options={"hoodie.index.enabled": "false"})
    assert switched_off.endswith("the key hoodie.index.enabled is false.")
    assert warned(table, options={"hoodie.index.strategy": "all"}) == []
    assert warned(table) == []
