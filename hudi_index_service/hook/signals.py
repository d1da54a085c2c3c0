"""Stopping on a signal."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from selectors import EVENT_READ, DefaultSelector
from types import FrameType


class Stop:
    """An event that a signal handler can set.

    A handler cannot set a `threading.Event`: it interrupts the main thread at any point, and would
    deadlock on a lock that this thread holds. This is a pipe that contains data once it is set.
    """

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)

    def set(self) -> None:
        """Ends current and future waits."""
        with suppress(BlockingIOError):  # the pipe is full, so it is set
            os.write(self._writing, b"\0")

    def is_set(self) -> bool:
        """Whether it was set."""
        return self.wait(0.0)

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until it is set, at most `seconds`. Returns whether it is set."""
        with DefaultSelector() as selector:
            selector.register(self._reading, EVENT_READ)
            return bool(selector.select(seconds))

    def close(self) -> None:
        """Closes the pipe; this object must not be used afterwards."""
        os.close(self._reading)
        os.close(self._writing)


@contextmanager
def stopped_by_signals() -> Iterator[Stop]:
    """Yields a `Stop` that SIGTERM or SIGINT sets. Setting it, or leaving the context, restores the
    previous handlers, so that a second signal ends the process at once. Main thread only."""
    stop = Stop()
    signals = (signal.SIGTERM, signal.SIGINT)

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def stop_on_signal(number: int, frame: FrameType | None) -> None:
        restore()
        stop.set()

    before = {number: signal.signal(number, stop_on_signal) for number in signals}
    try:
        yield stop
    finally:
        restore()
        stop.close()
