"""A limit on the request rate, shared by all of a process's requests to the same store."""

from collections.abc import Callable
from functools import lru_cache
from threading import Lock
from time import monotonic, sleep


class RateLimit:
    """Lets requests through at an even rate, without bursts, in order of arrival, so that threads
    share it fairly.

    Args:
        per_second: Long-run requests per second; may be below 1.
        clock: Returns the time in seconds.
        wait: Waits for the given number of seconds.
    """

    def __init__(
        self,
        per_second: float,
        *,
        clock: Callable[[], float] = monotonic,
        wait: Callable[[float], None] = sleep,
    ) -> None:
        self._interval = 1 / per_second
        self._clock = clock
        self._wait = wait
        self._next_free = clock()
        self._lock = Lock()

    def take(self) -> None:
        """Waits for the next request's turn."""
        with self._lock:
            now = self._clock()
            turn = max(now, self._next_free)
            self._next_free = turn + self._interval
        if turn > now:
            self._wait(turn - now)


@lru_cache(maxsize=64)
def shared_limit(location: str, per_second: float) -> RateLimit:
    """The process's limit for one location; all tasks of a worker, concurrent or successive, share
    it."""
    return RateLimit(per_second)
