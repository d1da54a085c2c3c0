"""Large builds are handed to spark-submit, which may fail in its own ways."""

import logging
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_index_service import open_table
from hudi_index_service.build.strategy import Budget, Strategy
from hudi_index_service.errors import BuildFailed
from hudi_index_service.fleet.builds.by_spark import build_by_spark, is_for_spark
from hudi_index_service.fleet.builds.messages import Order
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.storage.store import requests_made
from tests.fleet.conftest import LIMITS, ended, is_covered, seen
from tests.fleet.test_children import is_alive
from tests.programs import awaited


def fake(fault: str, folder: Path) -> tuple[str, ...]:
    """A command that is none of Spark."""
    note = os.fspath(folder / "note")
    return sys.executable, "-m", "tests.fleet.fake_spark_submit", fault, note


def order(*command: str, **fields: object) -> Order:
    policy = TablePolicy("t", "/t", spark_above=0, spark_submit=command)
    return Order("r", "build", policy, **fields)  # type: ignore[arg-type]


def test_driver_takes_the_order_and_tells_progress_and_end(tmp_path, caplog):
    told, before = [], requests_made()["write"]
    secret = {"secret": "canary"}

    with caplog.at_level(logging.INFO):
        end = build_by_spark(order(*fake("works", tmp_path), storage_options=secret), told.append)

    assert (end.outcome, end.built, end.summary) == ("finished", 2, "canary")  # by the socket
    assert [each.files_done for each in told] == [1]
    assert requests_made()["write"] - before == 7
    assert "a line of the driver" in caplog.text
    assert "words of Spark" not in caplog.text


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("dies", "ended with the status 3: Exception: there is no cluster"),
        ("killed", "ended with the status -9"),
    ],
)
def test_driver_that_fails_is_said_by_its_last_line(tmp_path, fault, says):
    with pytest.raises(BuildFailed, match=says):
        build_by_spark(order(*fake(fault, tmp_path)), repr)


def test_missing_command_is_said():
    with pytest.raises(BuildFailed, match="no-spark cannot be started: No such file"):
        build_by_spark(order("no-spark"), repr)


def test_only_what_is_due_counts_and_at_most_the_budget(indexed_table):
    with open_table(indexed_table) as table:

        def is_large(above: int | None, strategy: Strategy = Strategy.ALL, **budget: int) -> bool:
            policy = TablePolicy("t", table.uri, spark_above=above, budget=Budget(**budget))
            asked = Order("r", "build", policy)
            return is_for_spark(asked, table, strategy)

        size = sum(each.size for each in table.hudi_table.snapshot().base_files())
        assert [is_large(None), is_large(size), is_large(size - 1)] == [False, False, True]
        assert not is_large(0, Strategy.REFRESH)
        assert not is_large(100, bytes=100)
        table.build(strategy="all").raise_for_failures()
        assert not is_large(0)


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "note"), [("slow", "nobody waits"), ("deaf", None)])
def test_cancelled_driver_ends(supervising, policy, tmp_path, fault, note):
    table = policy(spark_above=0, spark_submit=fake(fault, tmp_path))
    fleet = supervising(table, limits=replace(LIMITS, grace_seconds=1) if note is None else LIMITS)
    running = seen(fleet, "orders", lambda now: now.running and now.running.progress).running
    pid = int((tmp_path / "note").read_text())
    assert is_alive(pid)

    fleet.cancel(running.id)

    assert ended(fleet, running.id).outcome == "cancelled"
    assert awaited(lambda: not is_alive(pid), 30)
    if note is not None:
        assert (tmp_path / "note").read_text() == note


@pytest.mark.slow
def test_driver_ends_with_the_process_that_waits_for_it(supervising, policy, tmp_path):
    fleet = supervising(policy(spark_above=0, spark_submit=fake("slow", tmp_path)))
    seen(fleet, "orders", lambda now: now.running and now.running.progress)
    driver = int((tmp_path / "note").read_text())

    (child,) = fleet.pids()
    os.kill(child, signal.SIGKILL)  # as the system does when the service dies

    assert awaited(lambda: not is_alive(driver), 30)


@pytest.mark.slow
def test_failure_of_spark_is_the_builds(supervising, policy, tmp_path):
    fleet = supervising(policy(spark_above=0, spark_submit=fake("dies", tmp_path)))
    end = seen(fleet, "orders", lambda now: now.ended).ended[-1]
    assert (end.outcome, end.error.code) == ("failed", "BUILD_FAILED")
    assert "there is no cluster" in end.error.message
    assert "client mode" in end.error.remedy


@pytest.mark.slow
def test_spark_builds_what_is_large(supervising, policy, tmp_path):
    submit = (
        *(str(Path(sys.executable).with_name("spark-submit")), "--master", "local[1]"),
        *("--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir={tmp_path}"),
    )
    table = policy(spark_above=0, spark_submit=submit)
    fleet = supervising(table)

    found = seen(fleet, "orders", lambda now: is_covered(now) and now.ended, 180)

    end = found.ended[-1]
    assert (end.outcome, end.built) == ("finished", 1)
    (events,) = tmp_path.glob("local-*")
    assert f"hudi-index build {table.uri}" in events.read_text()
