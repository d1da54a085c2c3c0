"""Several slices of one query: by one thread where each takes no time, else by several."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from time import perf_counter_ns
from typing import TypeAlias, TypeVar

from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.read.statistics import SliceStatistics

Job: TypeAlias = tuple[SlicePlan, SliceStatistics]
"""A slice that is read, and what is told of it."""

Result = TypeVar("Result")

# Of slices that take less, one thread reads more in the same time than several, which wait for each
# other's turns of the interpreter (20 look-ups: 5 ms by one thread, 11 ms by four).
_SOON_MS = 1.0
_LATE_MS = 10.0  # expected of a slice, are worth several threads from the first slice on
_LATE_BYTES = 2**20  # to be scanned, the same


def ahead(work: Callable[[Job], Result], jobs: list[Job], parallelism: int) -> Iterator[Result]:
    """The results in order, computed as they are asked for: at first one at a time, then more and
    more ahead of need, since the first ones were not enough."""
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


def on_all(
    work: Callable[[Job], Result],
    jobs: list[Job],
    parallelism: int,
    *,
    local: bool,
    counting: bool = False,
) -> list[Result]:
    """The results in order.

    Args:
        parallelism: Threads at most.
        local: Whether the base files are on the local disk: of a remote store, several are waited
            for at once from the beginning.
        counting: Whether rows are counted, if possible by the index alone.
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
    if plan.access is Access.INDEX:  # of look-ups alone nothing is known beforehand
        return counting or plan.expected is None or plan.expected.index_ms < _LATE_MS
    base_file = plan.file_slice.base_file
    return plan.access is Access.SCAN and base_file is not None and base_file.size < _LATE_BYTES
