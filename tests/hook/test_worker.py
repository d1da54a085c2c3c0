"""Wake-ups are coalesced, finished before closing, and never lost to a failing build."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from threading import Barrier, Event, Lock, Thread
from typing import Any

import pytest

from hudi_index_service.build.outcomes import Build, DeferredEntry
from hudi_index_service.build.reconcile import DueEntry
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.errors import BuildInProgress, CallbackRefused, PermissionDenied
from hudi_index_service.hook.worker import Worker
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.metadata.build_records import FailedEntry
from hudi_index_service.storage.waiting import Backoff
from tests.hook.callbacks import BlockedBuild, nothing_built
from tests.hook.manual_clock import ManualClock

BACKOFF = Backoff(first=10.0, longest=60.0)


class Builds:
    """A reconcile with prepared outcomes for table /a, in order: it raises an error, or returns a
    build."""

    def __init__(self, *outcomes: Exception | Build) -> None:
        self.outcomes = list(outcomes)
        self.tables: list[str] = []

    def __call__(self, table: str) -> Build:
        self.tables.append(table)
        prepared = self.outcomes and table == "/a"
        outcome = self.outcomes.pop(0) if prepared else nothing_built(table)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def failed_and_due_in(seconds: float) -> DeferredEntry:
    """A base file that failed, and is due again in that many seconds."""
    failed = FailedEntry("f.parquet", "lucene", ("c",), 1, "2026-01-01T00:00:00+00:00", "damaged")
    due = DueEntry(BaseFile("f.parquet", "", "f", "2026", 1), "lucene", (), {})
    return DeferredEntry(due, failed, datetime.now(UTC) + timedelta(seconds=seconds))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def working(clock: ManualClock) -> Iterator[Callable[..., Worker]]:
    """Starts a worker with the manual clock, closed after the test."""
    with ExitStack() as stack:

        def start(reconcile: Callable[[str], Build], **options: Any) -> Worker:
            worker = Worker(reconcile, queue=8, backoff=BACKOFF, clock=clock, **options)
            worker.start()
            stack.callback(worker.close)
            return worker

        yield start


def test_burst_of_wake_ups_for_one_table_is_one_build(working):
    build = BlockedBuild()
    worker = working(build)
    running = worker.wake("/a")
    assert build.begun.wait(30)

    burst = [worker.wake("/a") for _ in range(5)]
    other = worker.wake("/b")

    # None joins the running build, which may have read the timeline before their commits.
    assert running is not burst[0]
    assert {id(each) for each in burst} == {id(burst[0])}
    build.released.set()
    other.result(timeout=30)
    worker.close()
    assert build.tables == ["/a", "/a", "/b"]


def test_closing_finishes_waiting_builds_and_accepts_no_more(working):
    build = BlockedBuild()
    worker = working(build)
    futures = [worker.wake(table) for table in ("/a", "/b", "/c")]
    build.released.set()

    worker.close()

    assert [future.done() for future in futures] == [True, True, True]
    with pytest.raises(CallbackRefused, match="closing"):
        worker.wake("/a")


def test_failing_build_is_logged_and_the_next_one_runs(working, caplog):
    done = Event()

    def reconcile(table: str):
        if table == "/denied":
            raise PermissionDenied("/denied/.hoodie/.index: no.")
        if table == "/bug":
            raise ZeroDivisionError("a bug")
        done.set()
        return nothing_built(table)

    worker = working(reconcile)
    denied, bug, good = (worker.wake(table) for table in ("/denied", "/bug", "/good"))
    worker.close()

    assert isinstance(denied.exception(), PermissionDenied)
    assert isinstance(bug.exception(), ZeroDivisionError)
    assert good.exception() is None
    assert done.is_set()
    assert "PERMISSION_DENIED: /denied/.hoodie/.index: no. Give this user" in caplog.text
    assert "ZeroDivisionError: a bug" in caplog.text


def test_wake_up_of_a_failed_table_is_deferred_by_the_backoff(clock, working):
    builds = Builds(PermissionDenied("no"), PermissionDenied("still no"))
    worker = working(builds)
    assert worker.wake("/a").exception(timeout=30) is not None

    deferred = worker.wake("/a")
    clock.wait_until_a_thread_waits_for(10.0)
    assert worker.wake("/a") is deferred  # a later wake-up joins it
    clock.advance(9.5)
    assert worker.wake("/other").result(timeout=30) is not None  # others are built meanwhile
    assert not deferred.done()
    clock.advance(0.5)
    assert isinstance(deferred.exception(timeout=30), PermissionDenied)

    # Twice as long after the second failure in a row.
    third = worker.wake("/a")
    clock.wait_until_a_thread_waits_for(30.0)
    clock.advance(20.0)
    assert third.result(timeout=30) is not None
    assert builds.tables == ["/a", "/other", "/a", "/a"]


def test_success_ends_the_backoff(clock, working):
    worker = working(Builds(PermissionDenied("no")))
    worker.wake("/a").exception(timeout=30)
    clock.advance(10.0)

    # The second is built at once: nothing moves the clock.
    worker.wake("/a").result(timeout=30)
    worker.wake("/a").result(timeout=30)


def test_failed_files_do_not_delay_others_of_their_table(clock, working):
    deferred = failed_and_due_in(90)
    builds = Builds(Build("", Strategy.INCREMENTAL, (), deferred=(deferred,)))
    worker = working(builds)

    assert worker.wake("/a").result(timeout=30).deferred == (deferred,)

    # Other base files of the table need not wait.
    worker.wake("/a").result(timeout=30)
    assert builds.tables == ["/a", "/a"]


def test_failed_files_are_retried_when_they_are_due(clock, working):
    deferred, again = failed_and_due_in(90), Event()

    def reconcile(table: str) -> Build:
        if clock.now() > 0:
            again.set()
            return nothing_built(table)
        return Build("", Strategy.INCREMENTAL, (), deferred=(deferred,))

    working(reconcile).wake("/a").result(timeout=30)
    clock.advance(91.0)

    assert again.wait(30)  # without another wake-up


def test_worker_waits_for_the_build_of_another_process(clock, working):
    builds = Builds(BuildInProgress("another"), BuildInProgress("another"))
    worker = working(builds)

    future = worker.wake("/a")

    clock.wait_until_a_thread_waits_for(10.0)
    clock.advance(10.0)
    clock.wait_until_a_thread_waits_for(30.0)
    clock.advance(20.0)
    assert future.result(timeout=30).outcomes == ()  # one wake-up was enough
    assert builds.tables == ["/a"] * 3


def test_closing_does_not_wait_for_the_backoff(working):
    builds = Builds(PermissionDenied("no"), BuildInProgress("another"))
    worker = working(builds)
    worker.wake("/a").exception(timeout=30)
    waiting = worker.wake("/a")

    worker.close()

    assert isinstance(waiting.exception(), BuildInProgress)
    assert builds.tables == ["/a", "/a"]


def test_closing_at_once_cancels_waiting_builds(working):
    build = BlockedBuild()
    worker = working(build)
    running = worker.wake("/a")
    assert build.begun.wait(30)
    waiting = worker.wake("/b")
    waiting.add_done_callback(lambda _: build.released.set())

    worker.close(finish_waiting=False)

    assert waiting.cancelled()
    assert running.result().outcomes == ()
    assert build.tables == ["/a"]


def test_different_tables_are_built_concurrently_but_one_table_is_not(working):
    both_run, blocked = Barrier(2), BlockedBuild()
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()
    counting = Lock()

    def reconcile(table: str) -> Build:
        with counting:
            running[table] += 1
            most[table] = max(most[table], running[table])
        if table == "/slow":
            blocked(table)
        elif table in ("/a", "/b"):
            both_run.wait(30)
        with counting:
            running[table] -= 1
        return nothing_built(table)

    worker = working(reconcile, parallelism=2)
    first, second = worker.wake("/a"), worker.wake("/b")
    first.result(timeout=30), second.result(timeout=30)

    with blocked:
        slow = worker.wake("/slow")
        assert blocked.begun.wait(30)
        again = worker.wake("/slow")
        # The second thread skips the table that is being built.
        worker.wake("/c").result(timeout=30)
        assert not again.done()
        assert blocked.tables == ["/slow"]
    slow.result(timeout=30), again.result(timeout=30)
    assert blocked.tables == ["/slow", "/slow"]
    assert set(most.values()) == {1}


def test_closing_ends_the_wait_for_failed_files(clock, working):
    """Their retry time may pass while another thread still builds: it starts no other build."""
    deferred = Build("", Strategy.INCREMENTAL, (), deferred=(failed_and_due_in(90),))
    with BlockedBuild() as blocked:
        worker = working(
            lambda table: blocked(table) if table == "/slow" else deferred, parallelism=2
        )
        worker.wake("/a").result(timeout=30)
        worker.wake("/slow")
        assert blocked.begun.wait(30)
        again = worker.wake("/slow")
        clock.wait_until_a_thread_waits(lambda until: until is not None)
        closing = Thread(target=worker.close)
        closing.start()
        clock.wait_until_a_thread_waits(lambda until: until is None)
        assert not again.done()
    closing.join(30)
    assert again.done()


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 0.0), (1, 10.0), (2, 20.0), (3, 40.0), (4, 60.0), (5000, 60.0)]
)
def test_backoff_doubles_up_to_a_limit(failures, seconds):
    assert BACKOFF.seconds(failures) == seconds
