"""Wake-ups: coalesced, finished before closing, and never lost to a failing build."""

import logging
from threading import Event

import pytest

from hudi_index_service.errors import CallbackRefused, PermissionDenied
from hudi_index_service.hook.worker import Worker
from tests.hook.callbacks import BlockedBuild, nothing_built


def test_burst_for_one_table_is_one_more_build():
    build = BlockedBuild()
    worker = Worker(build, queue=4)
    worker.start()
    running = worker.wake("/a")
    assert build.begun.wait(30)

    burst = [worker.wake("/a") for _ in range(5)]
    other = worker.wake("/b")

    # None joins the build that runs: it may have read the timeline before their commit.
    assert running is not burst[0]
    assert {id(each) for each in burst} == {id(burst[0])}
    build.released.set()
    other.result(timeout=30)
    worker.close()
    assert build.tables == ["/a", "/a", "/b"]


def test_closing_finishes_what_waits_and_takes_no_more():
    build = BlockedBuild()
    worker = Worker(build, queue=4)
    worker.start()
    futures = [worker.wake(table) for table in ("/a", "/b", "/c")]
    build.released.set()

    worker.close()

    assert [future.done() for future in futures] == [True, True, True]
    with pytest.raises(CallbackRefused, match="closing"):
        worker.wake("/a")


def test_failing_build_is_logged_with_code_and_remedy_and_the_next_one_runs(caplog):
    done = Event()

    def reconcile(table: str):
        if table == "/denied":
            raise PermissionDenied("/denied/.hoodie/.index: no.")
        if table == "/bug":
            raise ZeroDivisionError("a bug")
        done.set()
        return nothing_built(table)

    worker = Worker(reconcile, queue=4)
    with caplog.at_level(logging.ERROR, logger="hudi_index_service"):
        worker.start()
        denied, bug, good = (worker.wake(table) for table in ("/denied", "/bug", "/good"))
        worker.close()

    assert isinstance(denied.exception(), PermissionDenied)
    assert isinstance(bug.exception(), ZeroDivisionError)
    assert good.exception() is None
    assert done.is_set()
    assert "PERMISSION_DENIED: /denied/.hoodie/.index: no. Give this user" in caplog.text
    assert "ZeroDivisionError: a bug" in caplog.text
