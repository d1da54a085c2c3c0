"""Whatever happens in a build's process, its order has an outcome, and no process is left."""

import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from hudi_index_service.fleet.builds.messages import Ended, Order
from hudi_index_service.fleet.builds.process import Child, Limits
from hudi_index_service.fleet.policies.policy import TablePolicy
from tests.fleet.faulty_runner import RUNNER
from tests.programs import awaited

pytestmark = pytest.mark.slow

LIMITS = Limits(memory_mb=400, grace_seconds=20, tick_seconds=0.05)


@pytest.fixture
def child():
    children = []

    def start(limits: Limits = LIMITS) -> Child:
        children.append(Child(limits, RUNNER))
        return children[-1]

    yield start
    for each in children:
        each.end()


def order(table: str, **fields: Any) -> Order:
    policy = TablePolicy(table, f"/tables/{table}")
    return Order(f"request of {table}", "build", policy, **fields)


def run(
    child: Child, table: str, *, timeout: float = 60.0, cancelled: Event | None = None
) -> Ended:
    ended = child.run(order(table), timeout=timeout, cancelled=cancelled or Event(), progress=repr)
    assert ended.request == f"request of {table}"
    return ended


def is_alive(pid: int) -> bool:
    """Whether the process has not ended, whether or not anybody has asked for its status."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def test_requests_to_stores_are_told_with_the_order_that_made_them(child):
    one, requests = child(), []
    for number in range(2):
        again = order(f"missing-{number}")
        one.run(again, timeout=60, cancelled=Event(), progress=repr, counted=requests.append)
    works = order("works")
    one.run(works, timeout=60, cancelled=Event(), progress=repr, counted=requests.append)

    first, second = (each.requests for each in requests)  # none for the last
    assert first == second
    assert set(first) <= {"read", "list", "status", "write", "delete"}
    assert all(first.values())


def test_queries_of_a_child_are_told(child, two_states, tmp_path):
    table, told = shutil.copytree(two_states["clustered"], tmp_path / "queries"), []
    asked = Order("r", "build", TablePolicy("queries", str(table)))

    end = child().run(asked, timeout=60, cancelled=Event(), progress=repr, counted=told.append)

    (counted,) = told
    (query,) = counted.queries
    assert (end.outcome, query["path"]) == ("finished", "scan")
    assert counted.requests["list"] > 0


def test_one_child_carries_out_many_orders(child):
    one = child()
    outcomes = [run(one, table) for table in ("works-1", "prints", "breaks", "works-2")]

    assert [each.outcome for each in outcomes] == ["finished", "finished", "failed", "finished"]
    assert outcomes[0].summary == outcomes[3].summary == str(one.pid)
    assert "ZeroDivisionError: a bug" in outcomes[2].error.message
    assert not one.is_worn
    one.end()
    assert not is_alive(one.pid)


def test_child_comes_after_the_service_and_hears_no_ctrl_c(child):
    one = child()
    assert run(one, "works").outcome == "finished"

    assert os.getpriority(os.PRIO_PROCESS, one.pid) > os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getsid(one.pid) == os.getsid(0)  # priorities hold within a session: see sched(7)
    assert os.getpgid(one.pid) == one.pid


@pytest.mark.parametrize(
    ("table", "outcome", "says"),
    [
        ("killed", "died", "SIGKILL"),
        ("segfaults", "died", "SIGSEGV"),
        ("leaves", "died", "status 7"),
        ("grows", "out_of_memory", "400 MiB"),
        ("starves", "out_of_memory", "memory"),
    ],
)
def test_child_that_dies_has_an_outcome(child, table, outcome, says):
    one = child()

    ended = run(one, table)

    assert (ended.outcome, ended.broke_off) == (outcome, True)
    assert says in ended.error.message
    assert ended.error.remedy
    assert one.is_worn
    assert not is_alive(one.pid)


def test_build_without_progress_is_ended(child):
    one = child()
    ended = run(one, "sleeps", timeout=0.5)
    assert (ended.outcome, ended.error.code) == ("hung", "BUILD_HUNG")
    assert not is_alive(one.pid)


def test_build_that_ignores_sigterm_is_killed(child):
    one = child(Limits(grace_seconds=0.2, tick_seconds=0.05))
    assert run(one, "deaf", timeout=0.5).outcome == "hung"
    assert not is_alive(one.pid)


def test_cancelled_build_is_ended_and_has_no_error(child):
    cancelled = Event()
    cancelled.set()
    ended = run(child(), "sleeps", cancelled=cancelled)
    assert (ended.outcome, ended.error) == ("cancelled", None)


def test_build_that_somebody_else_ends_is_to_be_done_later(child):
    """As systemd does, which sends SIGTERM to a service and its children."""
    one = child()

    def end(progress):
        os.kill(one.pid, signal.SIGTERM)

    ended = one.run(order("sleeps"), timeout=60, cancelled=Event(), progress=end)

    assert (ended.outcome, ended.broke_off) == ("interrupted", False)
    assert one.is_worn


def test_child_is_replaced_after_some_orders_or_when_it_has_grown(child):
    used = child(Limits(builds=2, tick_seconds=0.05))
    run(used, "works")
    assert not used.is_worn
    run(used, "works")
    assert used.is_worn
    large = child(Limits(memory_mb=1, tick_seconds=60))  # it is not looked at while it runs
    run(large, "works")
    assert large.is_worn


def test_secrets_are_neither_in_arguments_nor_in_variables(child, monkeypatch):
    monkeypatch.setenv("HUDI_INDEX_HOOK__SECRET", "canary-1")
    monkeypatch.setenv("HUDI_INDEX_ANSWER", '{"token": "canary-2"}')
    one = child()
    options = {"aws_secret_access_key": "canary-3"}
    secret = order("works", storage_options=options)
    assert one.run(secret, timeout=60, cancelled=Event(), progress=repr).outcome == "finished"

    shown = b"".join(
        Path(f"/proc/{one.pid}/{name}").read_bytes() for name in ("cmdline", "environ")
    )

    assert b"PYTHONPATH" in shown
    assert b"canary" not in shown
    assert "canary" not in repr(secret)


PARENT = """
from threading import Event
from hudi_index_service.fleet.builds.messages import Order
from hudi_index_service.fleet.builds.process import Child, Limits
from hudi_index_service.fleet.policies.policy import TablePolicy
from tests.fleet.faulty_runner import RUNNER
child = Child(Limits(), RUNNER)
def progress(now):
    print(child.pid, flush=True)
order = Order("r", "build", TablePolicy("deaf", "/tables/deaf"))
child.run(order, timeout=600, cancelled=Event(), progress=progress)
"""


def test_children_die_with_their_parent(running):
    parent = running(PARENT)
    pid = int(parent.stdout.readline())
    assert is_alive(pid)

    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()

    assert awaited(lambda: not is_alive(pid), 30)
