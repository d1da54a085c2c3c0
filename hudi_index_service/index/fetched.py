"""Counts what is fetched of indexes from a remote store, and which are opened anew, for whoever
asks for it to be counted."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Fetched:
    """Requests for data files of entries, the bytes that came, and entries that were opened."""

    requests: int = 0
    bytes: int = 0
    opened: int = 0


_counting: ContextVar[Fetched | None] = ContextVar("index_fetched", default=None)


@contextmanager
def counted(into: Fetched) -> Iterator[None]:
    """What this thread fetches in the block is added to `into`."""
    token = _counting.set(into)
    try:
        yield
    finally:
        _counting.reset(token)


def count(*, requests: int = 0, bytes: int = 0, opened: int = 0) -> None:
    """Something was fetched, or opened."""
    into = _counting.get()
    if into is not None:
        into.requests += requests
        into.bytes += bytes
        into.opened += opened
