"""Fast slices are read sequentially by the calling thread, slow ones in parallel."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from hudi_index_service.hudi.snapshot import BaseFile, FileSlice
from hudi_index_service.optimizer.expected import Expected, RowEstimate
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.read import parallel
from hudi_index_service.read.parallel import (
    MERGED_IN_WINDOW,
    WINDOW,
    Job,
    are_fast,
    mapped,
    windows,
)
from hudi_index_service.read.statistics import SliceStatistics

MB = 2**20


def jobs(
    count: int, *, index_ms: float | None = 0.5, size: int = 10 * MB, access: Access = Access.INDEX
) -> list[Job]:
    made = []
    for number in range(count):
        name = f"file-{number}"
        base_file = BaseFile(f"{name}.parquet", "", name, "1", size)
        plan = SlicePlan(FileSlice("", name, base_file), access, expected=expected(index_ms))
        made.append((plan, SliceStatistics(name, access)))
    return made


def expected(index_ms: float | None) -> Expected | None:
    rows = RowEstimate(0, 1, 1)
    return None if index_ms is None else Expected(rows, 1, 1, 0, index_ms, 1, 1)


class Clock:
    """Stand-in for the clock, advanced by the test."""

    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        return self.ns


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(parallel, "perf_counter_ns", clock)
    return clock


def by_this_thread(
    some: list[Job], work: Callable[[Job], Any] = lambda job: None, *, local: bool = True
) -> list[bool]:
    """For each slice, whether the calling thread read it."""
    caller = threading.get_ident()

    def read(job: Job) -> bool:
        work(job)
        return threading.get_ident() == caller

    return mapped(read, some, 4, may_be_fast=local and are_fast(plan for plan, _ in some))


def test_fast_slices_are_read_sequentially(clock):
    assert by_this_thread(jobs(5)) == [True] * 5
    assert by_this_thread(jobs(5, index_ms=None)) == [True] * 5  # nothing is known
    assert by_this_thread(jobs(5, size=1_000, access=Access.SCAN)) == [True] * 5


def test_slices_after_a_slow_one_are_read_in_parallel(clock):
    def work(job):
        clock.ns += 30_000_000 if job[0].file_slice.file_id == "file-1" else 1_000

    assert by_this_thread(jobs(5), work) == [True, True, False, False, False]
    clock.ns = 0
    assert by_this_thread(jobs(3), work) == [True, True, True]  # only one is left


def test_a_slow_slice_among_many_fast_ones_starts_no_threads(clock):
    def work(job):
        clock.ns += 30_000_000 if job[0].file_slice.file_id == "file-7" else 200_000

    assert by_this_thread(jobs(20), work) == [True] * 20


@pytest.mark.parametrize(
    "slow",
    [
        {"index_ms": 30.0},
        {"access": Access.SCAN},
        {"access": Access.MERGE},
    ],
)
def test_slices_expected_to_be_slow_are_read_in_parallel(clock, slow):
    assert by_this_thread(jobs(5, **slow)) == [False] * 5
    assert by_this_thread(jobs(1, **slow)) == [True]


def test_slices_in_a_remote_store_are_read_in_parallel(clock):
    assert by_this_thread(jobs(5), local=False) == [False] * 5


def test_results_keep_their_order():
    some = jobs(6, index_ms=30.0)
    assert mapped(lambda job: job[0].file_slice.file_id, some, 3, may_be_fast=False) == [
        f"file-{number}" for number in range(6)
    ]


def test_windows_grow_and_hold_few_slices_with_log_rows():
    def sizes(merged, at_first=None):
        return [len(window) for window in windows(range(600), merged, at_first)]

    assert sizes(set()) == [WINDOW, WINDOW, 600 - 2 * WINDOW]
    assert sizes(set(), at_first=1) == [1, 2, 4, 8, 16, 32, 64, 128, WINDOW, 600 - 255 - WINDOW]
    assert sizes(set(range(100))) == [MERGED_IN_WINDOW] * 3 + [WINDOW, 600 - 96 - WINDOW]
    some = set(range(0, 600, 7))
    assert [number for window in windows(range(600), some, 1) for number in window] == list(
        range(600)
    )
    assert max(len(some & set(window)) for window in windows(range(600), some)) == MERGED_IN_WINDOW
