"""Builds that are budgeted, cancelled, resumed, watched, or that fail: on one table of seven base
files, two of a later instant."""

import shutil
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

import pytest

from hudi_index_service import Budget, IndexedTable, open_table
from hudi_index_service.build.budget import UNLIMITED
from hudi_index_service.build.executor import Executor
from hudi_index_service.build.progress import BuildProgress
from hudi_index_service.build.record import BuildRecords, BuildState, RunningBuild
from hudi_index_service.build.run import Build, RetryFailed, run_build
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.build.task import BuildTask, TaskOutcome, TaskStatus, run_task
from hudi_index_service.config import BuildSettings, Settings
from hudi_index_service.errors import ConfigInvalid, StorageFailed
from hudi_index_service.rate_limit import RateLimit
from hudi_index_service.storage import Storage
from hudi_index_service.table.commit_metadata import CommitMetadata
from hudi_index_service.table.protocol import Instant
from tests.build.entries import all_manifests, assert_no_stray_data, manifests
from tests.build.spark_jobs import all_jobs_end
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES, ROWS = 7, 110


@pytest.fixture(scope="module")
def written(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven partitions, ``amount=0`` to ``6`` by the last digit of id; 5 and 6 written later."""
    path = tmp_path_factory.mktemp("days") / "days"
    options = hudi_options("days", partition_column="digit", **NO_METADATA_TABLE)
    rows = numbered_rows(spark, 0, ROWS).selectExpr(
        "*", "cast(cast(id as int) % 7 as string) digit"
    )
    rows = rows.coalesce(1).cache()
    write(rows.where("digit < '5'"), path, options, "bulk_insert", mode="overwrite")
    write(rows.where("digit >= '5'"), path, options, "bulk_insert")
    open_table(path).create_index("by_amount", ["amount", "msg"])
    return path


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    build = BuildSettings(parallelism=1, heartbeat_seconds=1)
    return Settings(cache_folder=tmp_path / "cache", build=build)


@pytest.fixture
def table(written: Path, tmp_path: Path, settings: Settings) -> IndexedTable:
    return open_table(shutil.copytree(written, tmp_path / "days"), settings=settings)


Run = Callable[..., Build]


@pytest.fixture
def run_on(table: IndexedTable, settings: Settings) -> Run:
    """Builds everything on an executor of the test's own."""

    def run(executor: Executor, budget: Budget = UNLIMITED) -> Build:
        return run_build(
            table._table,
            table._requirements(),
            strategy=Strategy.ALL,
            executor=executor,
            settings=settings,
            budget=budget,
        )

    return run


def partitions(build: Build) -> list[str]:
    return sorted(outcome.path.split("/")[0] for outcome in build.built)


def damage(table: IndexedTable, partition: str) -> Callable[[], None]:
    """Makes the partition's base file unreadable. Returns what mends it."""
    (base_file,) = Path(table.uri, partition).glob("*.parquet")
    whole = base_file.read_bytes()
    base_file.write_bytes(b"PAR1" + b"\0" * (len(whole) - 8) + b"PAR1")
    return lambda: [None, base_file.write_bytes(whole)][0]


# --- budget ----------------------------------------------------------------------------------


def test_a_budget_of_files_goes_to_the_newest_instant_first(table: IndexedTable) -> None:
    first = table.build(strategy="all", budget=Budget(files=2))

    assert (first.state, first.stopped_by) == (BuildState.STOPPED, "budget spent: files")
    assert (len(first.due), partitions(first), first.left) == (FILES, ["5", "6"], 5)
    (record,) = table.builds()
    assert (record.state, record.finished and record.finished["stopped_by"]) == (
        "stopped",
        "budget spent: files",
    )


def test_a_budget_of_bytes_stops_behind_the_file_that_spends_it(table: IndexedTable) -> None:
    sizes = [each.base_file.size for each in table.build(strategy="all", dry_run=True).due]
    build = table.build(strategy="all", budget=Budget(bytes=sum(sizes[:3])))

    assert (len(build.built), build.stopped_by) == (3, "budget spent: bytes")


def test_whoever_goes_on_builds_nothing_twice(table: IndexedTable) -> None:
    for _ in range(3):
        table.build(strategy="all", budget=Budget(files=3))

    assert [record.state for record in table.builds()] == ["finished", "stopped", "stopped"]
    assert len(all_manifests(table.uri)) == FILES
    assert {manifest.generation for manifest in manifests(table.uri)} == {1}
    assert table.build(strategy="all", budget=Budget(files=3)).due == ()
    assert_no_stray_data(table.uri)


class Punctual(Executor):
    """Runs tasks one by one, and from the second on as if their time were over."""

    parallelism = processes = 1

    def run(self, tasks: Sequence[BuildTask]) -> Generator[TaskOutcome | None, None, None]:
        yield run_task(tasks[0])
        for task in tasks[1:]:
            yield run_task(replace(task, deadline=0.0))


def test_what_was_begun_in_time_is_finished_and_nothing_begins_late(
    table: IndexedTable, run_on: Run
) -> None:
    build = run_on(Punctual(), Budget(minutes=60))

    assert [outcome.status for outcome in build.outcomes] == [TaskStatus.BUILT] + (
        [TaskStatus.LEFT] * (FILES - 1)
    )
    assert (build.state, build.stopped_by) == (BuildState.STOPPED, "budget spent: minutes")
    assert build.left == FILES - 1
    assert len(table.build(strategy="all").built) == FILES - 1


def test_no_time_at_all_builds_nothing(table: IndexedTable) -> None:
    build = table.build(strategy="all", budget=Budget(minutes=1e-12))
    assert (build.state, build.built, build.left) == (BuildState.STOPPED, (), FILES)


def test_tasks_share_the_rate_of_requests(
    table: IndexedTable, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    adding = Lock()

    def wait(seconds: float) -> None:
        with adding:
            waited.append(seconds)

    limit = RateLimit(5, clock=lambda: 0.0, wait=wait)
    monkeypatch.setattr("hudi_index_service.storage.shared_limit", lambda location, rate: limit)

    build = table.build(strategy="all", budget=Budget(requests_per_second=5))

    assert len(build.built) == FILES
    # Not one more than five a second, whichever task asked.
    assert sorted(waited) == pytest.approx([turn / 5 for turn in range(1, len(waited) + 1)])
    assert len(waited) > 3 * FILES, "listing, upload and manifest of each entry at least"


class Observed(Executor):
    """Takes tasks down and runs none."""

    parallelism = processes = 4

    def __init__(self) -> None:
        self.tasks: Sequence[BuildTask] = ()

    def run(self, tasks: Sequence[BuildTask]) -> Generator[TaskOutcome | None, None, None]:
        self.tasks = tasks
        yield None


def test_processes_get_an_equal_share_of_the_rate(table: IndexedTable, run_on: Run) -> None:
    executor = Observed()
    run_on(executor, Budget(requests_per_second=10))
    assert {task.storage.requests_per_second for task in executor.tasks} == {2.5}
    assert table._table.storage.requests_per_second is None


# --- cancel ----------------------------------------------------------------------------------


class Patient(Executor):
    """Runs the first task, then waits for ever: until it is closed."""

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


def test_a_build_is_cancelled_from_elsewhere_and_resumed(
    table: IndexedTable, run_on: Run, settings: Settings
) -> None:
    executor, builds = Patient(), []
    builder = Thread(target=lambda: builds.append(run_on(executor)))
    builder.start()
    assert executor.first_is_done.wait(60)
    elsewhere = open_table(table.uri, settings=settings)
    assert elsewhere.cancel() == "000001"
    assert elsewhere.cancel() == "000001", "asking twice is asking once"
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


class Winding(Patient):
    """Once it is closed, waits for what it has begun: until the test lets it end."""

    def __init__(self) -> None:
        super().__init__()
        self.closing, self.over = Event(), Event()

    def run(self, tasks: Sequence[BuildTask]) -> Generator[TaskOutcome | None, None, None]:
        try:
            yield from super().run(tasks)
        finally:
            self.closing.set()
            assert self.over.wait(60)


def test_a_cancelled_build_lives_until_the_tasks_that_it_began_have_ended(
    table: IndexedTable, run_on: Run, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor, beaten = Winding(), Event()
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

    assert beaten.wait(60), "it shows that it lives"
    executor.over.set()
    builder.join(60)
    assert table.builds()[0].state is BuildState.CANCELLED


def test_on_spark_the_jobs_are_cancelled(
    table: IndexedTable, spark: "SparkSession", settings: Settings
) -> None:
    by_spark = open_table(table.uri, spark=spark, settings=settings)
    asked = []

    build = by_spark.build(
        strategy="all",
        budget=Budget(requests_per_second=0.2),  # so slow that nothing ends before the heartbeat
        progress=lambda done, of: asked.append(table.cancel()),
    )

    assert set(asked) == {"000001"}
    assert (build.state, build.built, build.left) == (BuildState.CANCELLED, (), FILES)
    assert all_jobs_end(spark)
    assert len(by_spark.build(strategy="all").built) == FILES
    assert [status.coverage for status in table.status()] == [1.0]


def test_without_a_running_build_there_is_nothing_to_cancel(table: IndexedTable) -> None:
    assert table.cancel() is None
    table.build(strategy="all")
    assert table.cancel() is None


def test_a_request_to_cancel_is_no_sign_of_life(table: IndexedTable) -> None:
    storage = Storage(table.uri)
    BuildRecords(storage, stale_seconds=60).start({})
    assert table.cancel() == "000001"

    assert BuildRecords(storage, stale_seconds=0).all()[0].state is BuildState.DEAD


def test_control_c_is_a_cancelled_build(table: IndexedTable) -> None:
    def interrupt(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.build(strategy="all", progress=interrupt)
    (record,) = table.builds()
    told = record.to_dict()
    assert (record.state, told["stopped_by"], told["error"]) == ("cancelled", "interrupted", None)
    # What tasks that had begun by then have published counts as well.
    assert [told["built"]] == [status.indexed for status in table.status()]


# --- progress and records --------------------------------------------------------------------


def test_a_running_build_tells_how_far_it_is(table: IndexedTable, run_on: Run) -> None:
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
    # As the commits' metadata has it: no base file was opened for it.
    assert (before.rows, before.rows_estimated) == (ROWS, False)
    assert (before.rows_per_second, before.eta_seconds) == (None, None)
    after = table.builds()[0].progress
    assert after is not None
    assert (after.files_done, after.rows_done, after.bytes_done) == (FILES, ROWS, after.bytes)
    assert after.bytes == sum(manifest.base_file.length for manifest in manifests(table.uri))
    assert after.rows_per_second == pytest.approx(ROWS / after.seconds, rel=0.05)
    assert after.eta_seconds == 0


def test_rows_that_cannot_be_told_beforehand_are_counted_as_they_come(
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


def test_one_id_runs_through_everything(
    table: IndexedTable, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="hudi_index_service.build"):
        build = table.build(strategy="all")

    assert build.id == "000001"
    assert table.builds()[0].id == build.id
    assert {manifest.build.id for manifest in manifests(table.uri)} == {build.id}
    assert len(caplog.messages) == FILES + 2
    assert all(message.startswith(f"Build {build.id}") for message in caplog.messages)


@pytest.mark.parametrize("operation", ["heartbeat", "finished.json", "cancel.json"])
def test_a_record_that_cannot_be_written_costs_no_result(
    operation: str, table: IndexedTable, run_on: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The disk is full for the record; entries find room.
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


def test_wake_ups_leave_a_failing_file_alone_for_a_while(table: IndexedTable) -> None:
    mend = damage(table, "6")
    assert len(table.build(strategy="all", budget=Budget(files=1)).failed) == 1

    # The others are built; the failing one waits.
    build = table.build(strategy="all", retry_failed="backoff")
    assert (len(build.built), build.failed) == (FILES - 1, ())
    (deferred,) = build.deferred
    assert (deferred.due.base_file.partition, deferred.failed.times) == ("6", 1)
    failed = datetime.fromisoformat(deferred.failed.last)
    assert build.retry_at == deferred.retry_at == failed + timedelta(seconds=60)

    # Nothing else is due: no record for that.
    again = table.build(strategy="all", retry_failed="backoff")
    assert (again.id, again.due, len(again.deferred)) == ("", (), 1)
    assert len(table.builds()) == 2

    # By hand it is tried at once; then it waits twice as long.
    assert len(table.build(strategy="all").failed) == 1
    (deferred,) = table.build(strategy="all", retry_failed="backoff").deferred
    assert deferred.failed.times == 2
    failed = datetime.fromisoformat(deferred.failed.last)
    assert deferred.retry_at == failed + timedelta(seconds=120)
    (failing,) = table.status().failing
    assert "6/" in failing.path
    assert failing.error

    mend()
    assert len(table.build(strategy="all").built) == 1
    assert table.status().failing == ()
    assert table.build(strategy="all", retry_failed="backoff").deferred == ()


def test_what_always_fails_does_not_use_up_a_budget(table: IndexedTable) -> None:
    """The newest base file, which is built first, cannot be built at all."""
    damage(table, "6")
    for _ in range(FILES):
        table.build(strategy="all", budget=Budget(files=1))
    assert len(all_manifests(table.uri)) == FILES - 1


def test_with_other_columns_a_failing_file_is_tried_at_once(table: IndexedTable) -> None:
    damage(table, "6")
    table.build(strategy="all")
    assert len(table.build(strategy="all", retry_failed="backoff").deferred) == 1

    table.create_index("by_id", ["id"])

    build = table.build(strategy="all", retry_failed="backoff")
    assert (len(build.failed), build.deferred) == (1, ())


def test_what_failed_with_columns_that_nobody_wants_any_more_is_over(table: IndexedTable) -> None:
    mend = damage(table, "6")
    table.build(strategy="all")
    mend()
    table.alter_index("by_amount", drop=["msg"])
    assert len(table.status().failing) == 1, "its entry is lacking still"

    assert len(table.build(strategy="all").built) == 1
    assert table.status().failing == ()
    (record, *_) = table.builds()
    assert record.finished is not None
    assert record.finished["failing"] == []


def test_what_failed_for_a_dropped_index_is_over(table: IndexedTable) -> None:
    damage(table, "6")
    table.build(strategy="all")
    assert len(table.status().failing) == 1

    table.drop_index("by_amount")
    assert table.status().failing == ()


def test_now_or_backoff(table: IndexedTable) -> None:
    never: RetryFailed = "never"  # type: ignore[assignment]
    with pytest.raises(ConfigInvalid, match="retry_failed='never'"):
        table.build(retry_failed=never)


# --- dry run ---------------------------------------------------------------------------------


def test_a_dry_run_tells_the_cost_only_where_it_is_known(table: IndexedTable) -> None:
    plan = table.build(strategy="all", dry_run=True)
    assert plan.estimate is not None
    total = sum(each.base_file.size for each in plan.due)
    assert (plan.estimate.files, plan.estimate.bytes) == (FILES, total)
    assert (plan.estimate.seconds, plan.estimate.index_bytes) == (None, None)

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
    unknown = table.build(strategy="all", dry_run=True).estimate
    assert unknown is not None
    assert (unknown.files, unknown.seconds, unknown.index_bytes) == (FILES, None, None)
    assert table.build(strategy="all", dry_run=True).to_dict()["estimate"] == unknown.to_dict()
