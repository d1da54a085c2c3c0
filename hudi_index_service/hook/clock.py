"""The clock that measures how long a table waits."""

from threading import Condition
from time import monotonic


class Clock:
    """A monotonic clock in seconds, with a wait."""

    def now(self) -> float:
        """The current time."""
        return monotonic()

    def wait(self, condition: Condition, until: float | None) -> None:
        """Waits until the condition, which the caller holds, is notified, or until the given time.
        May return early."""
        condition.wait(None if until is None else max(0.0, until - self.now()))
