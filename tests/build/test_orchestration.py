"""Builds that are budgeted, cancelled, resumed, observed, or that fail: on one table of seven base
files, two of which have a later instant."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

import pytest

from hudi_index_service import Budget, IndexedTable, open_table
from hudi_index_service.build.entry.task import BuildTask, TaskOutcome, TaskStatus, run_task
from hudi_index_service.build.executor import Executor
from hudi_index_service.build.outcomes import Build
from hudi_index_service.build.run import run_build
from hudi_index_service.build.strategy import UNLIMITED, Strategy
from hudi_index_service.config import BuildSettings, Settings
from hudi_index_service.errors import StorageFailed
from hudi_index_service.hudi.commit_metadata import CommitMetadata
from hudi_index_service.hudi.snapshot import Instant
from hudi_index_service.index.metadata.build_records import (
    BuildProgress,
    BuildRecords,
    BuildState,
    RunningBuild,
)
from hudi_index_service.index.metadata.definitions import DefinitionStore
from hudi_index_service.storage.store import Storage
from hudi_index_service.storage.waiting import RateLimit
from tests.build.entries import all_manifests, assert_no_stray_data, manifests
from tests.build.spark_jobs import all_jobs_end
from tests.edited_tables import make_unreadable
from tests.indexed import OwnTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES, ROWS = 7, 110


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    build = BuildSettings(parallelism=1, heartbeat_seconds=1)
    return Settings(cache_folder=tmp_path / "cache", build=build)


@pytest.fixture
def table(own_table: OwnTable) -> IndexedTable:
    """Seven partitions, ``0`` to ``6``: id modulo 7; 5 and 6 were written later."""
    return own_table("seven_partitions", ["amount", "msg"], name="by_amount", build=False)


Run = Callable[..., Build]


@pytest.fixture
def run_on(table: IndexedTable, settings: Settings) -> Run:
    """Builds everything with the test's own executor."""

    def run(executor: Executor, budget: Budget = UNLIMITED) -> Build:
        return run_build(
            table.hudi_table,
            DefinitionStore(table.hudi_table.storage).read(),
            strategy=Strategy.ALL,
            executor=executor,
            settings=settings,
            budget=budget,
        )

    return run


def partitions(build: Build) -> list[str]:
    return sorted(outcome.path.split("/")[0] for outcome in build.built)


def damage(table: IndexedTable, partition: str) -> Callable[[], object]:
    """Makes the partition's base file unreadable. Returns a function that repairs it."""
    (base_file,) = Path(table.uri, partition).glob("*.parquet")
    return make_unreadable(base_file)


# --- budget ----------------------------------------------------------------------------------


def test_a_budget_of_files_is_spent_on_the_newest_instant_first(table: IndexedTable) -> None:
    first = table.build(strategy="all", budget=Budget(files=2))

    assert (first.state, first.stopped_by) == (BuildState.STOPPED, "budget spent: files")
    assert (len(first.due), partitions(first), first.left) == (FILES, ["5", "6"], 5)
    (record,) = table.builds()
    assert (record.state, record.finished and record.finished["stopped_by"]) == (
        "stopped",
        "budget spent: files",
    )


def test_a_budget_of_bytes_stops_after_the_file_that_spends_it(table: IndexedTable) -> None:
    sizes = [each.base_file.size for each in table.build(strategy="all", dry_run=True).due]
    build = table.build(strategy="all", budget=Budget(bytes=sum(sizes[:3])))

    assert (len(build.built), build.stopped_by) == (3, "budget spent: bytes")


def test_resumed_builds_build_nothing_twice(table: IndexedTable) -> None:
    for _ in range(3):
        table.build(strategy="all", budget=Budget(files=3))

    assert [record.state for record in table.builds()] == ["finished", "stopped", "stopped"]
    assert len(all_manifests(table.uri)) == FILES
    assert {manifest.generation for manifest in manifests(table.uri)} == {1}
    assert table.build(strategy="all", budget=Budget(files=3)).due == ()
    assert_no_stray_data(table.uri)


class OnlyFirstInTime(Executor):
    """Runs tasks one by one; after the first, their deadline has passed."""

    parallelism = processes = 1

    def run(self, tasks: Sequence[BuildTask]) -> Generator[TaskOutcome | None, None, None]:
        yield run_task(tasks[0])
        for task in tasks[1:]:
            yield run_task(replace(task, deadline=0.0))


def test_tasks_begun_before_the_deadline_finish_and_none_begin_after(
    table: IndexedTable, run_on: Run
) -> None:
    build = run_on(OnlyFirstInTime(), Budget(minutes=60))

    assert [outcome.status for outcome in build.outcomes] == [TaskStatus.BUILT] + (
        [TaskStatus.LEFT] * (FILES - 1)
    )
    assert (build.state, build.stopped_by) == (BuildState.STOPPED, "budget spent: minutes")
    assert build.left == FILES - 1
    assert len(table.build(strategy="all").built) == FILES - 1


def test_a_budget_of_no_time_builds_nothing(table: IndexedTable) -> None:
    build = table.build(strategy="all", budget=Budget(minutes=1e-12))
    assert (build.state, build.built, build.left) == (BuildState.STOPPED, (), FILES)


def test_tasks_share_the_request_rate(
    table: IndexedTable, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    adding = Lock()

    def wait(seconds: float) -> None:
        with adding:
            waited.append(seconds)

    monkeypatch.setattr("hudi_index_service.storage.waiting.monotonic", lambda: 0.0)
    monkeypatch.setattr("hudi_index_service.storage.waiting.sleep", wait)
    limit = RateLimit(5)
    monkeypatch.setattr(
        "hudi_index_service.storage.store.shared_limit", lambda location, rate: limit
    )

    build = table.build(strategy="all", budget=Budget(requests_per_second=5))

    assert len(build.built) == FILES
    # No more than five requests a second, over all tasks.
    assert sorted(waited) == pytest.approx([turn / 5 for turn in range(1, len(waited) + 1)])
    assert len(waited) > 3 * FILES, "at least listing, upload and manifest of each entry"


class TaskRecorder(Executor):
    """Records the tasks and runs none."""

    parallelism = processes = 4

    def __init__(self) -> None:
        self.tasks: Sequence[BuildTask] = ()

    def run(self, tasks: Sequence[BuildTask]) -> Generator[TaskOutcome | None, None, None]:
        self.tasks = tasks
        yield None


def test_processes_get_equal_shares_of_the_request_rate(table: IndexedTable, run_on: Run) -> None:
    executor = TaskRecorder()
    run_on(executor, Budget(requests_per_second=10))
    assert {task.storage.requests_per_second for task in executor.tasks} == {2.5}
    assert table.hudi_table.storage.requests_per_second is None


# --- cancel ----------------------------------------------------------------------------------


class BlocksAfterFirst(Executor):
    """Runs the first task, then waits until it is closed."""

    parallelism = processes = 1

    def __init__(self) -> None:
        self.first_is_done = Event()
        self.closed = False

    def run(self, tasks: Sequence[BuildTask]) -> Generator[TaskOutcome | None, None, None]:
        try:
            yield run_task(tasks[0])
            pause = Event()
            while True:
                pause.wait(0.02)
                self.first_is_done.set()
                yield None
        finally:
            self.closed = True


def test_a_build_is_cancelled_by_another_client_and_resumed(
    table: IndexedTable, run_on: Run, settings: Settings
) -> None:
    executor, builds = BlocksAfterFirst(), []
    builder = Thread(target=lambda: builds.append(run_on(executor)))
    builder.start()
    assert executor.first_is_done.wait(60)
    other_client = open_table(table.uri, settings=settings)
    assert other_client.cancel() == "000001"
    assert other_client.cancel() == "000001", "a second request changes nothing"
    builder.join(60)

    (build,) = builds
    assert (build.state, len(build.built), build.left) == (BuildState.CANCELLED, 1, FILES - 1)
    assert executor.closed
    (record,) = table.builds()
    assert (record.state, record.cancel_requested) == ("cancelled", True)
    assert record.progress is not None
    assert (record.progress.files_done, record.progress.files) == (1, FILES)

    assert len(table.build(strategy="all").built) == FILES - 1
    assert {manifest.generation for manifest in manifests(table.uri)} == {1}


class SlowToClose(BlocksAfterFirst):
    """When closed, waits for the task that it began, until the test lets it end."""

    def __init__(self) -> None:
        super().__init__()
        self.closing, self.may_end = Event(), Event()

    def run(self, tasks: Sequence[BuildTask]) -> Generator[TaskOutcome | None, None, None]:
        try:
            yield from super().run(tasks)
        finally:
            self.closing.set()
            assert self.may_end.wait(60)


def test_a_cancelled_build_runs_until_its_started_tasks_have_ended(
    table: IndexedTable, run_on: Run, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor, beaten = SlowToClose(), Event()
    beat = RunningBuild.beat

    def watched(self: RunningBuild, progress: BuildProgress | None = None) -> None:
        beat(self, progress)
        if executor.closing.is_set():
            beaten.set()

    monkeypatch.setattr(RunningBuild, "beat", watched)
    builder = Thread(target=lambda: run_on(executor))
    builder.start()
    assert executor.first_is_done.wait(60)
    assert table.cancel() == "000001"
    assert executor.closing.wait(60)

    assert beaten.wait(60), "its heartbeat continues"
    executor.may_end.set()
    builder.join(60)
    assert table.builds()[0].state is BuildState.CANCELLED


def test_cancelling_a_build_on_spark_cancels_its_jobs(
    table: IndexedTable, spark: "SparkSession", settings: Settings
) -> None:
    by_spark = open_table(table.uri, spark=spark, settings=settings)
    cancelled = []

    build = by_spark.build(
        strategy="all",
        budget=Budget(requests_per_second=0.2),  # too slow for any task to end before the heartbeat
        progress=lambda done, of: cancelled.append(table.cancel()),
    )

    assert set(cancelled) == {"000001"}
    assert (build.state, build.built, build.left) == (BuildState.CANCELLED, (), FILES)
    assert all_jobs_end(spark)
    assert len(by_spark.build(strategy="all").built) == FILES
    assert [status.coverage for status in table.status()] == [1.0]


def test_a_cancel_request_does_not_count_as_a_heartbeat(table: IndexedTable) -> None:
    storage = Storage(table.uri)
    BuildRecords(storage, stale_seconds=60).start({})
    assert table.cancel() == "000001"

    assert BuildRecords(storage, stale_seconds=0).all()[0].state is BuildState.DEAD


def test_control_c_cancels_a_build(table: IndexedTable) -> None:
    def interrupt(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.build(strategy="all", progress=interrupt)
    (record,) = table.builds()
    as_dict = record.to_dict()
    assert (record.state, as_dict["stopped_by"], as_dict["error"]) == (
        "cancelled",
        "interrupted",
        None,
    )
    # Entries published by tasks that were already running count as well.
    assert [as_dict["built"]] == [status.covered for status in table.status()]


# --- progress and records --------------------------------------------------------------------


def test_a_running_build_reports_its_progress(table: IndexedTable, run_on: Run) -> None:
    seen = []

    class Watched(Executor):
        parallelism = processes = 1

        def run(self, tasks: Sequence[BuildTask]) -> Generator[TaskOutcome | None, None, None]:
            seen.append(table.builds()[0])
            yield from map(run_task, tasks)

    run_on(Watched())

    (running,) = seen
    assert (running.state, running.id) == (BuildState.RUNNING, "000001")
    before = running.progress
    assert before is not None
    assert (before.files, before.files_done, before.rows_done) == (FILES, 0, 0)
    # The number of rows comes from the commits' metadata: no base file was opened for it.
    assert (before.rows, before.rows_estimated) == (ROWS, False)
    assert (before.rows_per_second, before.eta_seconds) == (None, None)
    after = table.builds()[0].progress
    assert after is not None
    assert (after.files_done, after.rows_done, after.bytes_done) == (FILES, ROWS, after.bytes)
    assert after.bytes == sum(manifest.base_file.length for manifest in manifests(table.uri))
    assert after.rows_per_second == pytest.approx(ROWS / after.seconds, rel=0.05)
    assert after.eta_seconds == 0


def test_rows_not_known_in_advance_are_counted_as_they_are_built(
    table: IndexedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(self: CommitMetadata, instant: Instant) -> dict[str, int]:
        raise StorageFailed(f"Instant {instant.requested} cannot be read.")

    monkeypatch.setattr(CommitMetadata, "rows_written", unreadable)

    assert len(table.build(strategy="all", budget=Budget(files=2)).built) == 2
    progress = table.builds()[0].progress
    assert progress is not None
    assert (
        progress.rows
        == progress.rows_done
        == sum(manifest.base_file.rows for manifest in manifests(table.uri))
    )


def test_records_have_the_outcomes_and_the_id_that_manifests_and_logs_have(
    table: IndexedTable, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="hudi_index_service.build"):
        build = table.build(strategy="all")

    (record,) = table.builds()
    assert (build.id, record.id, record.number) == ("000001", "000001", 1)
    assert record.state == "finished"
    assert (record.started["strategy"], record.started["due"]) == ("all", FILES)
    assert record.finished is not None
    assert record.finished["built"] == FILES
    assert {each["status"] for each in record.finished["outcomes"]} == {"built"}
    assert {manifest.build.id for manifest in manifests(table.uri)} == {build.id}
    assert len(caplog.messages) == FILES + 2
    assert all(message.startswith(f"Build {build.id}") for message in caplog.messages)


@pytest.mark.parametrize("operation", ["heartbeat", "finished.json", "cancel.json"])
def test_a_build_succeeds_if_its_record_cannot_be_written(
    operation: str, table: IndexedTable, run_on: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The disk is full for the record, not for entries.
    refused = Event()
    for name in ("create", "replace", "size"):
        real = getattr(Storage, name)

        def full(self: Storage, path: str, *data: bytes, real: Callable = real) -> object:
            if path.endswith(operation):
                refused.set()
                raise StorageFailed(f"{path}: No space left on device.")
            return real(self, path, *data)

        monkeypatch.setattr(Storage, name, full)
    pause = Event()

    class LongerThanAHeartbeat(Executor):
        parallelism = processes = 1

        def run(self, tasks: Sequence[BuildTask]) -> Generator[TaskOutcome | None, None, None]:
            pause.wait(1.05)
            yield from map(run_task, tasks)

    build = run_on(LongerThanAHeartbeat())

    assert refused.is_set(), "otherwise nothing was tested"
    assert (build.state, len(build.built)) == (BuildState.FINISHED, FILES)
    assert table.scan("amount = 3", use_index="require").count() == 1


# --- failures --------------------------------------------------------------------------------


def test_a_failing_file_is_retried_with_backoff(table: IndexedTable) -> None:
    repair = damage(table, "6")
    assert len(table.build(strategy="all", budget=Budget(files=1)).failed) == 1

    # The others are built; the failing one has to wait.
    build = table.build(strategy="all", retry_failed="backoff")
    assert (len(build.built), build.failed) == (FILES - 1, ())
    (deferred,) = build.deferred
    assert (deferred.due.base_file.partition, deferred.failed.times) == ("6", 1)
    failed = datetime.fromisoformat(deferred.failed.last)
    assert build.retry_at == deferred.retry_at == failed + timedelta(seconds=60)

    # Nothing else is due, so there is no record.
    again = table.build(strategy="all", retry_failed="backoff")
    assert (again.id, again.due, len(again.deferred)) == ("", (), 1)
    assert len(table.builds()) == 2

    # A manual build retries it at once; then it has to wait twice as long.
    assert len(table.build(strategy="all").failed) == 1
    (deferred,) = table.build(strategy="all", retry_failed="backoff").deferred
    assert deferred.failed.times == 2
    failed = datetime.fromisoformat(deferred.failed.last)
    assert deferred.retry_at == failed + timedelta(seconds=120)
    (failing,) = table.status().failing
    assert "6/" in failing.path
    assert failing.error

    repair()
    assert len(table.build(strategy="all").built) == 1
    assert table.status().failing == ()
    assert table.build(strategy="all", retry_failed="backoff").deferred == ()


def test_a_file_that_always_fails_does_not_exhaust_the_budget(table: IndexedTable) -> None:
    """The newest base file, which comes first, cannot be built."""
    damage(table, "6")
    for _ in range(FILES):
        table.build(strategy="all", budget=Budget(files=1))
    assert len(all_manifests(table.uri)) == FILES - 1


def test_a_failing_file_is_retried_at_once_with_other_columns(table: IndexedTable) -> None:
    damage(table, "6")
    table.build(strategy="all")
    assert len(table.build(strategy="all", retry_failed="backoff").deferred) == 1

    table.create_index("by_id", ["id"])

    build = table.build(strategy="all", retry_failed="backoff")
    assert (len(build.failed), build.deferred) == (1, ())


def test_a_failure_with_dropped_columns_ends_with_the_next_build(table: IndexedTable) -> None:
    repair = damage(table, "6")
    table.build(strategy="all")
    repair()
    table.alter_index("by_amount", drop=["msg"])
    assert len(table.status().failing) == 1, "its entry is still missing"

    assert len(table.build(strategy="all").built) == 1
    assert table.status().failing == ()
    (record, *_) = table.builds()
    assert record.finished is not None
    assert record.finished["failing"] == []


def test_failures_of_a_dropped_index_are_forgotten(table: IndexedTable) -> None:
    damage(table, "6")
    table.build(strategy="all")
    assert len(table.status().failing) == 1

    table.drop_index("by_amount")
    assert table.status().failing == ()


# --- dry run ---------------------------------------------------------------------------------


def test_a_dry_run_estimates_the_cost_from_past_builds(table: IndexedTable) -> None:
    plan = table.build(strategy="all", dry_run=True)
    assert plan.estimate is not None
    total = sum(each.base_file.size for each in plan.due)
    assert (plan.estimate.files, plan.estimate.bytes) == (FILES, total)
    assert plan.estimate.builds == ()  # but a sample
    assert (plan.outcomes, all_manifests(table.uri), table.builds()) == ((), [], [])
    first = table.build(strategy="all", budget=Budget(files=2))
    plan = table.build(strategy="all", dry_run=True)
    cost = plan.estimate
    assert cost is not None
    assert cost.builds == (first.id,)
    read = sum(each.base_file.size for each in first.due[:2])
    share = cost.bytes / read
    assert cost.seconds == pytest.approx(share * sum(o.seconds for o in first.built), abs=0.06)
    assert cost.index_bytes == pytest.approx(share * sum(o.index_bytes for o in first.built), abs=1)

    within = table.build(strategy="all", budget=Budget(files=3), dry_run=True)
    assert (len(within.due), within.estimate and within.estimate.files) == (5, 3)

    table.create_index("by_id", ["id"])
    plan = table.build(strategy="all", dry_run=True)
    assert plan.estimate is not None
    assert (plan.estimate.files, plan.estimate.builds) == (FILES, ())
    assert plan.to_dict()["estimate"] == plan.estimate.to_dict()
