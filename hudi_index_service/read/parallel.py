"""Reads the slices of a query in one thread if each is fast, else in several."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from time import perf_counter_ns
from typing import TypeAlias, TypeVar

from hudi_index_service.cancellation import Cancellation, check, in_caller
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.read.statistics import SliceStatistics

Job: TypeAlias = tuple[SlicePlan, SliceStatistics]
"""A slice to be read, and its statistics."""

Result = TypeVar("Result")
T = TypeVar("T")

WINDOW = 256
"""The most slices whose row ids and footers are held at a time."""

MERGED_IN_WINDOW = 32
"""The most of them whose log rows are held, too."""

# Below this time per slice, expected or measured, one thread is faster than several, which contend
# for the interpreter, while decoding pages uses all processors anyway. On two, ten queries on six
# files of 300,000 rows took 1.05 to 1.4 times as long if threads began from 1 ms on; eleven others,
# with slices of 10 ms among them, took as long with threads as without.
_FAST_MS = 10.0
_SLOW_BYTES = 2**20  # a file to be scanned that is worth several threads from the beginning
_WAITING = 4  # times as many threads, for slices that mostly wait for a remote store


def waiting(parallelism: int, *, is_local: bool) -> int:
    """The most slices whose entries, or single pages, are read at once: more of a remote table."""
    return parallelism if is_local else _WAITING * parallelism


def windows(
    slices: Sequence[int], merged: Set[int], at_first: int | None = None
) -> Iterator[Sequence[int]]:
    """The slices that are looked up together, in order.

    Args:
        merged: Those of which log rows are merged.
        at_first: The number of slices in the first window; each further one has twice as many, up
            to `WINDOW`, which is what None stands for.
    """
    start, size = 0, at_first or WINDOW
    while start < len(slices):
        window = slices[start : start + size]
        with_logs = [number for number, each in enumerate(window) if each in merged]
        if len(with_logs) > MERGED_IN_WINDOW:
            window = window[: with_logs[MERGED_IN_WINDOW]]
        yield window
        start, size = start + len(window), min(2 * size, WINDOW)


def prefetch(work: Callable[[T], Result], jobs: Sequence[T], parallelism: int) -> Iterator[Result]:
    """The results in order, computed on demand: first one at a time, then with more and more
    prefetching, since the first ones were not enough."""
    if jobs:
        check()
        yield work(jobs[0])
    if len(jobs) < 2:
        return
    window, todo = min(2, parallelism), iter(jobs[1:])
    with _threads(min(parallelism, len(jobs) - 1), work) as (pool, work):
        running: deque[Future[Result]] = deque()
        while True:
            next_jobs = islice(todo, window - len(running))
            running.extend(pool.submit(work, job) for job in next_jobs)
            if not running:
                return
            yield running.popleft().result()
            window = min(2 * window, parallelism)


def mapped(
    work: Callable[[T], Result], jobs: Sequence[T], parallelism: int, *, may_be_fast: bool
) -> list[Result]:
    """The results in order: by this thread as long as jobs prove fast, else by several.

    Args:
        may_be_fast: Whether to begin with one thread.
    """
    if not may_be_fast:
        return _by_threads(work, jobs, parallelism)
    results: list[Result] = []
    started = perf_counter_ns()
    for job in jobs:
        check()
        results.append(work(job))
        mean_ms = (perf_counter_ns() - started) / len(results) / 1e6
        if mean_ms > _FAST_MS and len(results) < len(jobs):
            return results + _by_threads(work, jobs[len(results) :], parallelism)
    return results


def are_fast(plans: Iterable[SlicePlan]) -> bool:
    """Whether slices of a local table are expected to be read faster by one thread."""
    return all(map(_may_be_fast, plans))


def _by_threads(work: Callable[[T], Result], jobs: Sequence[T], parallelism: int) -> list[Result]:
    threads = min(parallelism, len(jobs))
    if threads < 2:
        return [work(job) for job in jobs]
    with _threads(threads, work) as (pool, work):
        return list(pool.map(work, jobs))


@contextmanager
def _threads(
    count: int, work: Callable[[T], Result]
) -> Iterator[tuple[ThreadPoolExecutor, Callable[[T], Result]]]:
    """Threads, and the work as they do it. What they still do at the end of the block is ended."""
    with ThreadPoolExecutor(count, "index-read") as pool:
        cancellation = Cancellation()
        with cancellation:
            in_threads = in_caller(work)
        try:
            yield pool, in_threads
        finally:
            cancellation.cancel()
            pool.shutdown(wait=False, cancel_futures=True)


def _may_be_fast(plan: SlicePlan) -> bool:
    if plan.access is Access.INDEX:  # the time of look-ups alone is unknown beforehand
        return plan.expected is None or plan.expected.index_ms < _FAST_MS
    if plan.access is Access.LOGS:
        return True
    return plan.access is Access.SCAN and plan.file_slice.base_file.size < _SLOW_BYTES
