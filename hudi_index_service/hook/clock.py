"""The clock by which a table waits."""

from threading import Condition
from time import monotonic


class Clock:
    """Seconds that only ever go up, and waiting by them."""

    def now(self) -> float:
        """The present moment."""
        return monotonic()

    def wait(self, condition: Condition, until: float | None) -> None:
        """Waits until the condition, which the caller holds, is notified, or until a moment.
        May return early."""
        condition.wait(None if until is None else max(0.0, until - self.now()))
