"""A table of several base files for each test, and work in threads beside it."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.golden.table import Golden

ROWS = 2000


@pytest.fixture
def path(golden: Golden, tmp_path: Path) -> Path:
    return golden("four_base_files").put(tmp_path / "table")


@contextmanager
def meanwhile(work: Callable[[], Any], threads: int) -> Iterator[Callable[[], None]]:
    """Repeats `work` in this many threads until the block ends, then raises what it raised. Yields
    a function that waits until every thread has finished it once more."""
    stopped = Event()
    done = [Event() for _ in range(threads)]

    def repeat(mine: Event) -> None:
        while not stopped.is_set():
            work()
            mine.set()

    def wait_for_all_threads() -> None:
        for each in done:
            each.clear()
        for each, future in zip(done, futures, strict=True):
            while not each.wait(0.1) and not future.done():
                pass

    with ThreadPoolExecutor(threads) as pool:
        futures: list[Future[None]] = [pool.submit(repeat, each) for each in done]
        try:
            yield wait_for_all_threads
        finally:
            stopped.set()
        for future in futures:
            future.result(timeout=60)
