"""A clock that stands still until a test moves it."""

from collections.abc import Callable
from threading import Condition

from hudi_index_service.hook.worker import Clock


class ManualClock(Clock):
    """Threads that wait by it wake when they are notified, or when `advance` passes their moment,
    without any real delay."""

    def __init__(self) -> None:
        self._now = 0.0
        self._moved = Condition()
        self._waiting: dict[Condition, float | None] = {}

    def now(self) -> float:
        return self._now

    def wait(self, condition: Condition, until: float | None) -> None:
        with self._moved:
            self._waiting[condition] = until
            self._moved.notify_all()
            if until is not None and until <= self._now:
                return  # the moment passed before this thread began to wait
        condition.wait()

    def wait_until_a_thread_waits_for(self, moment: float) -> None:
        """Returns once a thread waits for exactly that moment."""
        self.wait_until_a_thread_waits(lambda until: until == moment)

    def wait_until_a_thread_waits(self, condition: Callable[[float | None], bool]) -> None:
        """Returns once a thread waits for a moment for which `condition` is true; the moment is
        None for a thread that waits only for a notification."""
        with self._moved:
            assert self._moved.wait_for(
                lambda: any(condition(until) for until in self._waiting.values()), timeout=30
            )

    def advance(self, seconds: float) -> None:
        """Moves the clock and wakes every waiting thread."""
        with self._moved:
            self._now += seconds
            waiting = list(self._waiting)
        for condition in waiting:
            with condition:
                condition.notify_all()
