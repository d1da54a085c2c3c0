"""Tasks in Spark: outcomes as they arrive, parts on several workers, lost workers, abandoning."""

import fcntl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hudi_index_service.build.entry.task import BuildTask, TaskOutcome, TaskStatus
from hudi_index_service.build.spark import SparkExecutor
from hudi_index_service.errors import BuildFailed
from hudi_index_service.index.metadata.entry import EntryListing
from hudi_index_service.storage.store import Storage
from tests.build.base_files import build_task, numbered_rows, stored_below, write_base_file
from tests.build.spark_jobs import all_jobs_end, running_jobs
from tests.build.waiting_storage import DeadlyStorage, WaitingStorage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def tasks(storage: Storage, names: str, rows: int = 500) -> list[BuildTask]:
    """One task per letter."""
    Path(storage.uri).mkdir(exist_ok=True)
    data = numbered_rows(rows)
    return [
        build_task(storage, write_base_file(storage, data, name), data.schema, part_bytes=2**30)
        for name in names
    ]


@contextmanager
def closed_gate(root: Path) -> Iterator[None]:
    """Blocks every listing of a `WaitingStorage`."""
    with (root / "gate").open("wb") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        yield


@pytest.fixture(autouse=True)
def _is_impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkExecutor, "patience", 0.05)


def outcomes_of(running: Any) -> list[TaskOutcome]:
    return [outcome for outcome in running if outcome is not None]


def next_outcome(running: Iterator[TaskOutcome | None]) -> TaskOutcome:
    return next(outcome for outcome in running if outcome is not None)


def test_an_outcome_is_returned_while_other_tasks_run(
    spark: "SparkSession", tmp_path: Path
) -> None:
    quick, slow = Storage(tmp_path / "quick"), WaitingStorage(tmp_path / "slow")
    waiting = tasks(slow, "w")
    with closing(SparkExecutor(spark).run([*tasks(quick, "abc"), *waiting])) as run:
        with closed_gate(tmp_path / "slow"):
            known = [next_outcome(run) for _ in range(3)]
            assert next(run) is None, "the fourth is blocked"
            (description,) = running_jobs(spark)
            assert description == f"build 000007 of {quick.uri}: 4 entries in 4 tasks"
        known += outcomes_of(run)
    assert [outcome.status for outcome in known] == [TaskStatus.BUILT] * 4
    assert [outcome.path[0] for outcome in known][-1] == "w"


def test_a_large_base_file_is_built_by_several_workers(
    spark: "SparkSession", tmp_path: Path
) -> None:
    storage = Storage(tmp_path)
    small = [replace(task, part_bytes=1000) for task in tasks(storage, "abcdefgh", rows=20)]
    data = numbered_rows(20_000)
    large = build_task(storage, write_base_file(storage, data, "large"), data.schema)
    large = replace(large, part_bytes=1000)

    built = outcomes_of(SparkExecutor(spark).run([*small, large]))

    assert {outcome.status for outcome in built} == {TaskStatus.BUILT}
    assert len(built) == 9
    entry = EntryListing(storage, "lucene").find(large.due.base_file)
    segments = [m.name for m in entry.manifest.data.members if m.name.endswith(".si")]
    assert len(segments) == spark.sparkContext.defaultParallelism == 2
    assert len(stored_below(storage)) == 2 * 9, "a manifest and a data file each"


def test_only_the_task_that_kills_its_workers_fails(spark: "SparkSession", tmp_path: Path) -> None:
    deadly = DeadlyStorage(tmp_path / "deadly")
    killing = tasks(deadly, "k")
    (tmp_path / "deadly" / "deadly").touch()
    others = tasks(Storage(tmp_path / "others"), "abc")

    outcomes = outcomes_of(SparkExecutor(spark).run([*killing, *others]))

    by_name = {outcome.path[0]: outcome for outcome in outcomes}
    # Spark cancels the job: entries published by then are found present.
    published = {TaskStatus.BUILT, TaskStatus.PRESENT}
    assert {by_name[name].status for name in "abc"} <= published
    assert by_name["k"].status is TaskStatus.FAILED
    assert by_name["k"].error is not None
    assert "Job aborted due to stage failure" in by_name["k"].error
    assert len(outcomes) == 4


def test_the_build_fails_if_its_job_is_cancelled_by_others(
    spark: "SparkSession", tmp_path: Path
) -> None:
    waiting = tasks(WaitingStorage(tmp_path), "abc")
    with closed_gate(tmp_path):
        run = SparkExecutor(spark).run(waiting)
        while not running_jobs(spark):
            assert next(run) is None
        spark.sparkContext.cancelAllJobs()
        with pytest.raises(BuildFailed, match="cancelled"):
            list(run)
        assert all_jobs_end(spark)


@pytest.mark.parametrize("count", [0, 1])
def test_no_task_and_one_task_are_run(spark: "SparkSession", tmp_path: Path, count: int) -> None:
    storage = Storage(tmp_path)
    assert len(outcomes_of(SparkExecutor(spark).run(tasks(storage, "a" * count)))) == count
