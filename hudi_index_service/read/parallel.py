"""Reads the slices of a query in one thread if each is fast, else in several."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from time import perf_counter_ns
from typing import TypeAlias, TypeVar

from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.read.statistics import SliceStatistics

Job: TypeAlias = tuple[SlicePlan, SliceStatistics]
"""A slice to be read, and its statistics."""

Result = TypeVar("Result")

# Below this time per slice, one thread is faster than several, which contend for the interpreter
# (20 look-ups: 5 ms in one thread, 11 ms in four).
_SOON_MS = 1.0
_LATE_MS = 10.0  # expected time of a slice that is worth several threads from the first slice on
_LATE_BYTES = 2**20  # the same, as bytes to be scanned


def prefetch(work: Callable[[Job], Result], jobs: list[Job], parallelism: int) -> Iterator[Result]:
    """The results in order, computed on demand: first one at a time, then with more and more
    prefetching, since the first ones were not enough."""
    if jobs:
        yield work(jobs[0])
    if len(jobs) < 2:
        return
    window, todo = min(2, parallelism), iter(jobs[1:])
    with ThreadPoolExecutor(min(parallelism, len(jobs) - 1), "index-read") as pool:
        running: deque[Future[Result]] = deque()
        try:
            while True:
                some = islice(todo, window - len(running))
                running.extend(pool.submit(work, job) for job in some)
                if not running:
                    return
                yield running.popleft().result()
                window = min(2 * window, parallelism)
        finally:
            for each in running:
                each.cancel()


def map_slices(
    work: Callable[[Job], Result],
    jobs: list[Job],
    parallelism: int,
    *,
    local: bool,
    counting: bool = False,
) -> list[Result]:
    """The results in order.

    Args:
        parallelism: The maximum number of threads.
        local: Whether the base files are on the local disk. Remote files are read in parallel from
            the beginning.
        counting: Whether rows are only counted, if possible by the index alone.
    """
    soon = len(jobs) < 2 or (local and all(_may_be_soon_read(each, counting) for each, _ in jobs))
    if not soon:
        return _by_threads(work, jobs, parallelism)
    done: list[Result] = []
    for job in jobs:
        started = perf_counter_ns()
        done.append(work(job))
        if perf_counter_ns() - started > _SOON_MS * 1e6 and len(done) < len(jobs):
            return done + _by_threads(work, jobs[len(done) :], parallelism)
    return done


def _by_threads(work: Callable[[Job], Result], jobs: list[Job], parallelism: int) -> list[Result]:
    most = min(parallelism, len(jobs))
    if most < 2:
        return [work(job) for job in jobs]
    with ThreadPoolExecutor(most, "index-read") as pool:
        return list(pool.map(work, jobs))


def _may_be_soon_read(plan: SlicePlan, counting: bool) -> bool:
    if counting:
        plan = plan.for_counting()
    if plan.access is Access.INDEX:  # the time of look-ups alone is unknown beforehand
        return counting or plan.expected is None or plan.expected.index_ms < _LATE_MS
    base_file = plan.file_slice.base_file
    return plan.access is Access.SCAN and base_file is not None and base_file.size < _LATE_BYTES
