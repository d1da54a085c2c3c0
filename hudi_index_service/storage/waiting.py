"""How long to wait: for a request's turn, under a limit on the rate of a process's requests to the
same store; and after failed attempts."""

from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from time import monotonic, sleep


class RateLimit:
    """Lets requests through at an even rate, without bursts, in order of arrival, so that threads
    share it fairly.

    Args:
        per_second: Long-run requests per second; may be below 1.
    """

    def __init__(self, per_second: float) -> None:
        self._interval = 1 / per_second
        self._next_free = monotonic()
        self._lock = Lock()

    def take(self) -> None:
        """Waits for the next request's turn."""
        with self._lock:
            now = monotonic()
            turn = max(now, self._next_free)
            self._next_free = turn + self._interval
        if turn > now:
            sleep(turn - now)


@lru_cache(maxsize=64)
def shared_limit(location: str, per_second: float) -> RateLimit:
    """The process's limit for one location; all tasks of a worker, concurrent or successive, share
    it."""
    return RateLimit(per_second)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff: `first` seconds after one failure, doubled with each further failure in
    a row, at most `longest`."""

    first: float
    longest: float

    def seconds(self, failures: int) -> float:
        """The wait after this many failures in a row; 0 after none."""
        if failures <= 0:
            return 0.0
        # The exponent is bounded, since 2.0 ** 1024 overflows.
        return min(self.longest, self.first * 2.0 ** min(failures - 1, 64))
