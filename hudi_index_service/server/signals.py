"""Stopping when told to."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from selectors import EVENT_READ, DefaultSelector
from types import FrameType


class Stop:
    """What `threading.Event` would be if a signal's handler could set it: the handler runs in the
    main thread, in the middle of anything, and waits for ever for a lock which that thread holds
    just then. This is a pipe that has something in it once it is set."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)

    def set(self) -> None:
        """Lets whoever waits go on, now and from now on."""
        with suppress(BlockingIOError):  # full of what was set before
            os.write(self._writing, b"\0")

    def is_set(self) -> bool:
        """Whether it was set."""
        return self.wait(0.0)

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until it is set, or so long. Returns whether it is set."""
        with DefaultSelector() as selector:
            selector.register(self._reading, EVENT_READ)
            return bool(selector.select(seconds))

    def close(self) -> None:
        """Gives the pipe back; then nobody may use this any more."""
        os.close(self._reading)
        os.close(self._writing)


@contextmanager
def stopped_by_signals() -> Iterator[Stop]:
    """What SIGTERM or SIGINT sets. Once it is set, or the context has ended, the signals do again
    what they did before: a second one ends the process at once. Main thread only."""
    stop = Stop()
    signals = (signal.SIGTERM, signal.SIGINT)

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def stop_when_told(number: int, frame: FrameType | None) -> None:
        restore()
        stop.set()

    before = {number: signal.signal(number, stop_when_told) for number in signals}
    try:
        yield stop
    finally:
        restore()
        stop.close()
