"""How long a table waits after builds that failed, and the clock by which it waits."""

from dataclasses import dataclass
from threading import Condition
from time import monotonic


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential: `first` seconds after one failure, twice as long after each further one in a
    row, at most `longest`."""

    first: float
    longest: float

    def seconds(self, failures: int) -> float:
        """How long to wait after so many failures in a row; 0 after none."""
        if failures <= 0:
            return 0.0
        # The exponent is bounded, since 2.0 ** 1024 is an error.
        return min(self.longest, self.first * 2.0 ** min(failures - 1, 64))


DEFAULT_BACKOFF = Backoff(first=5.0, longest=300.0)


class Clock:
    """Seconds that only ever go up, and waiting by them."""

    def now(self) -> float:
        """The present moment."""
        return monotonic()

    def wait(self, condition: Condition, until: float | None) -> None:
        """Waits until the condition, which the caller holds, is notified, or until a moment.
        May return early."""
        condition.wait(None if until is None else max(0.0, until - self.now()))
