"""A query that nobody waits for ends, with the threads that it has started."""

import time
from collections.abc import Callable, Iterator
from threading import Event, Thread

import pytest

from hudi_index_service import Cancellation, IndexedTable, open_table
from hudi_index_service.cancellation import check
from hudi_index_service.errors import QueryCancelled
from hudi_index_service.read.parallel import mapped, prefetch


@pytest.fixture(scope="module")
def table(golden_index) -> Iterator[IndexedTable]:
    with open_table(golden_index("hundred_base_files", ["_hoodie_record_key"])) as opened:
        yield opened


READS: dict[str, Callable[[IndexedTable], object]] = {
    "rows by index": lambda table: table.scan("_hoodie_record_key = 'k'").to_arrow(),
    "rows by scan": lambda table: table.scan("ts < 0", use_index="never").to_arrow(),
    "batches": lambda table: list(table.scan("ts < 0").to_batches()),
    "some rows": lambda table: table.scan("ts >= 0", limit=3).to_arrow(),
    "count": lambda table: table.scan("_hoodie_record_key > 'k'").count(),
    "existence": lambda table: table.scan("_hoodie_record_key > 'k'").exists(),
    "row ids": lambda table: table.scan("_hoodie_record_key > 'k'").row_ids(),
    "locations": lambda table: table.tag_location(["k"]),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_cancelled_query_reads_nothing(table, read):
    with Cancellation() as cancellation:
        cancellation.cancel()
        with pytest.raises(QueryCancelled, match="was cancelled") as raised:
            read(table)
    assert raised.value.code == "QUERY_CANCELLED"
    read(table)  # others are not concerned


def test_time_is_limited(table):
    with Cancellation(seconds=0), pytest.raises(QueryCancelled, match="longer than 0 s"):
        table.scan("ts >= 0").count()


def test_blocks_are_nested():
    with Cancellation() as outer, Cancellation(seconds=1000) as inner:
        check()
        outer.cancel()
        with pytest.raises(QueryCancelled):
            inner.check()
    check()


# --- threads ---------------------------------------------------------------------------------


def until_cancelled(seen: Event) -> None:
    """Works until that is not wanted any more."""
    seen.set()
    while True:
        check()
        time.sleep(0.001)  # leaves the interpreter to others


def test_threads_of_a_query_end_with_it():
    begun = Event()
    with Cancellation() as cancellation:
        Thread(target=lambda: (begun.wait(), cancellation.cancel())).start()
        with pytest.raises(QueryCancelled):
            mapped(until_cancelled, [begun] * 4, 4, may_be_fast=False)


def test_a_failure_ends_the_other_threads():
    begun = Event()

    def work(number):
        if number:
            until_cancelled(begun)
        begun.wait()
        raise ValueError("the first one fails")

    with pytest.raises(ValueError, match="the first one"):
        mapped(work, range(4), 4, may_be_fast=False)


def test_threads_that_read_ahead_end_once_enough_is_read():
    begun = Event()

    def work(number):
        if number > 1:
            until_cancelled(begun)
        return number

    results = prefetch(work, range(8), 4)
    assert [next(results), next(results)] == [0, 1]
    begun.wait()
    results.close()
