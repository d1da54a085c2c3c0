"""Reading ahead in a thread."""

import threading
from collections.abc import Generator

import pytest

from hudi_index_service.build.entry.indexing import read_ahead

READER = "index-build-read_0"
"""The name of the thread."""


def test_items_are_read_in_order_by_a_separate_thread() -> None:
    threads = set()

    def numbers() -> Generator[int, None, None]:
        for number in range(100):
            threads.add(threading.current_thread().name)
            yield number

    with read_ahead(numbers(), depth=2) as ready:
        assert list(ready) == list(range(100))
    assert threads == {READER}


def test_no_more_than_the_depth_is_read_ahead() -> None:
    made = 0

    def numbers() -> Generator[int, None, None]:
        nonlocal made
        for number in range(50):
            made += 1
            yield number

    with read_ahead(numbers(), depth=2) as ready:
        for position in range(50):
            # Two are ready, and one is being made.
            assert made <= position + 3
            assert next(ready) == position
    assert made == 50


def test_an_error_is_raised_in_place_of_the_next_item() -> None:
    def numbers() -> Generator[int, None, None]:
        yield 1
        raise ZeroDivisionError("no more")

    with read_ahead(numbers(), depth=2) as ready:
        assert next(ready) == 1
        with pytest.raises(ZeroDivisionError, match="no more"):
            next(ready)


def test_an_error_in_the_consumer_closes_the_generator_and_ends_its_thread() -> None:
    closed_in = []

    def numbers() -> Generator[int, None, None]:
        try:
            while True:
                yield 0
        finally:
            closed_in.append(threading.current_thread().name)

    def fail_after_one() -> None:
        with read_ahead(numbers(), depth=2) as ready:
            next(ready)
            raise KeyError

    with pytest.raises(KeyError):
        fail_after_one()
    assert closed_in == [READER]
    assert READER not in {thread.name for thread in threading.enumerate()}
