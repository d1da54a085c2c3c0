"""Ends work that nobody waits for any more.

What a query does is checked between windows of slices, jobs and portions of rows, by this thread
and by those that it starts; and every 50 ms while it waits for the row reader or for Lucene.
"""

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from threading import Event
from time import monotonic
from typing import Self, TypeVar

from hudi_index_parquet import check_while_working

from hudi_index_service.errors import QueryCancelled

T = TypeVar("T")
Result = TypeVar("Result")


class Cancellation:
    """Ends the queries in its ``with`` block when they are not wanted any more: they raise
    QueryCancelled. Blocks may be nested; the outer one ends those of the inner one, too.

    >>> with Cancellation(seconds=5) as cancellation:  # another thread may call cancel()
    ...     rows = table.scan("sender = 'UserA'").to_arrow()

    Args:
        seconds: How long the queries may take, from now on; None for any time.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._cancelled = Event()
        self._seconds = seconds
        self._end = None if seconds is None else monotonic() + seconds
        self._around = _current.get()

    def cancel(self) -> None:
        """Ends the queries; any thread may call it."""
        self._cancelled.set()

    def check(self) -> None:
        """Does nothing while the queries are wanted.

        Raises:
            QueryCancelled: they are not.
        """
        if self._cancelled.is_set():
            raise QueryCancelled("The query was cancelled.")
        if self._end is not None and monotonic() >= self._end:
            raise QueryCancelled(f"The query took longer than {self._seconds:g} s.")
        if self._around is not None:
            self._around.check()

    def __enter__(self) -> Self:
        self._before = _current.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._before)


_current: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


def check() -> None:
    """Raises QueryCancelled if what this thread does is not wanted any more."""
    current = _current.get()
    if current is not None:
        current.check()


def in_caller(work: Callable[[T], Result]) -> Callable[[T], Result]:
    """The same for other threads, which check what the calling thread checks, before each call and
    during it."""
    context = copy_context()

    def checked(item: T) -> Result:
        check()
        return work(item)

    # A context runs one call at a time.
    return lambda item: context.copy().run(checked, item)


check_while_working(check)
