"""Counting a build's progress, with a fake clock."""

from copy import copy

import pytest

from hudi_index_service.build.entry.indexing import RowCount
from hudi_index_service.build.entry.task import TaskOutcome, TaskStatus
from hudi_index_service.build.outcomes import ProgressCounter
from hudi_index_service.build.reconcile import DueEntry
from hudi_index_service.cli.reports import progress_counts
from hudi_index_service.hudi.snapshot import BaseFile


class FakeClock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    clock = FakeClock()
    monkeypatch.setattr("hudi_index_service.build.outcomes.monotonic", clock)
    return clock


SIZES = {"a": 100, "b": 300, "c": 600}


@pytest.fixture
def entries() -> list[DueEntry]:
    files = [BaseFile(path, "", path, "1", size) for path, size in SIZES.items()]
    return [DueEntry(file, "lucene", (), {}) for file in files]


def outcome(path: str, status: TaskStatus = TaskStatus.BUILT, rows: int = 0) -> TaskOutcome:
    return TaskOutcome(path, "lucene", status, rows=rows)


def test_rate_and_time_left_follow_from_the_rows_done(
    clock: FakeClock, entries: list[DueEntry]
) -> None:
    counter = ProgressCounter(entries, {"a": 10, "b": 30, "c": 60})
    clock.now = 4
    counter.add(outcome("a", rows=10))
    counter.add(outcome("b", rows=30))
    now = counter.now()
    assert (now.files, now.files_done, now.files_failed) == (3, 2, 0)
    assert (now.bytes, now.bytes_done) == (1000, 400)
    assert (now.rows, now.rows_done, now.rows_estimated) == (100, 40, False)
    assert (now.seconds, now.rows_per_second, now.eta_seconds) == (4, 10, 6)


def test_rows_count_as_soon_as_they_are_indexed(clock: FakeClock, entries: list[DueEntry]) -> None:
    indexed = RowCount()
    counter = ProgressCounter(entries, {"a": 10, "b": 30, "c": 60}, indexed)
    assert (counter.now().rows_done, counter.now().eta_seconds) == (0, None)

    clock.now = 2
    indexed.add(25)
    now = counter.now()
    assert (now.files_done, now.rows_done, now.rows_per_second, now.eta_seconds) == (0, 25, 12.5, 6)
    assert progress_counts(now) == "0/3 files, 25/100 rows, 6 s left"

    indexed.add(900)
    assert counter.now().rows_done == 100, "no more, even if a file is built twice"
    for path, rows in {"a": 10, "b": 30, "c": 50}.items():
        counter.add(outcome(path, rows=rows))
    assert counter.now().rows_done == 90, "in the end, the rows of the outcomes"
    assert copy(indexed).rows == 0, "as when it is sent to another process"


def test_unknown_row_counts_are_estimated_from_bytes(
    clock: FakeClock, entries: list[DueEntry]
) -> None:
    counter = ProgressCounter(entries, {"a": 50})
    assert (counter.now().rows, counter.now().rows_estimated) == (500, True)
    counter.add(outcome("b", rows=30))  # 80 rows in 400 bytes so far
    assert counter.now().rows == 80 + 120
    counter.add(outcome("c", rows=60))
    assert (counter.now().rows, counter.now().rows_estimated) == (140, False)


def test_rows_and_rate_are_none_if_unknown(clock: FakeClock, entries: list[DueEntry]) -> None:
    now = ProgressCounter(entries, {}).now()
    assert (now.rows, now.rows_per_second, now.eta_seconds) == (None, None, None)


def test_failed_and_gone_files_count_as_done_and_left_ones_do_not(
    clock: FakeClock, entries: list[DueEntry]
) -> None:
    counter = ProgressCounter(entries, {})
    counter.add(outcome("a", TaskStatus.FAILED))
    counter.add(outcome("b", TaskStatus.GONE))
    counter.add(outcome("c", TaskStatus.LEFT))
    now = counter.now()
    assert (now.files_done, now.files_failed, now.bytes_done, now.rows_done) == (2, 1, 400, 0)
