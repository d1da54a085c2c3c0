"""Queries in many threads while the index and the table change under them."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

from hudi_index_service import open_table
from hudi_index_service.config import Settings
from tests.golden.table import Golden

ROWS = 2000
EXPECTED = {
    "amount = 300": 1,
    "amount BETWEEN 300 AND 599": 100,
    "msg = 'Buying car 3'": sum(i % 7 == 3 for i in range(ROWS)),
    "msg LIKE 'Buying%' AND amount < 30": 10,
    "NOT (amount >= 30 OR msg = 'Buying car 3')": 9,
    "dt = '2026-01-01' AND amount IS NOT NULL": ROWS // 2,
    "amount IS NULL": 0,
}


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


def test_eight_threads_query_one_table_while_it_is_built_dropped_and_cleaned(
    golden: Golden, tmp_path: Path
) -> None:
    path = golden("four_base_files").put(tmp_path / "table")
    settings = Settings(cache_folder=tmp_path / "cache", clean={"grace_seconds": 0})
    table = open_table(path, settings=settings)
    turns = count()
    used: Counter[bool] = Counter()

    def query() -> None:
        where, expected = list(EXPECTED.items())[next(turns) % len(EXPECTED)]
        scan = table.scan(where, columns=["id"])
        assert scan.count() == expected, where
        assert len(set(scan.to_arrow()["id"].to_pylist())) == expected, where
        used[scan.explain().uses_index] += 1

    with meanwhile(query, threads=8) as wait_for_all_threads:
        for columns in (["amount"], ["amount", "msg"], ["msg"]):
            table.create_index("by", columns)
            assert len(table.build(strategy="all").raise_for_failures().built) == 4
            wait_for_all_threads()
            table.clean()
            table.drop_index("by", purge=True)
            wait_for_all_threads()

    assert used[True] >= 8
    assert used[False] >= 8
    assert list((path / ".hoodie/.index").rglob("*.pack")) == []
