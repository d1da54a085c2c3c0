"""Counts the index bytes fetched from a remote store and the indexes opened, for callers that need
the numbers."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Fetched:
    """Requests for data files of entries, the bytes fetched, and the entries opened."""

    requests: int = 0
    bytes: int = 0
    opened: int = 0


_counting: ContextVar[Fetched | None] = ContextVar("index_fetched", default=None)


@contextmanager
def counted(into: Fetched) -> Iterator[None]:
    """Adds what this thread fetches in the block to `into`."""
    token = _counting.set(into)
    try:
        yield
    finally:
        _counting.reset(token)


def count(*, requests: int = 0, bytes: int = 0, opened: int = 0) -> None:
    """Counts requests, fetched bytes, or opened entries."""
    into = _counting.get()
    if into is not None:
        into.requests += requests
        into.bytes += bytes
        into.opened += opened
