"""Stopping when told to."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType


@contextmanager
def stopped_by_signals() -> Iterator[Event]:
    """An event that SIGTERM or SIGINT sets. Once it is set, or the context has ended, the signals
    do again what they did before: a second one ends the process at once. Main thread only."""
    stop = Event()
    signals = (signal.SIGTERM, signal.SIGINT)

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def stop_when_told(number: int, frame: FrameType | None) -> None:
        stop.set()
        restore()

    before = {number: signal.signal(number, stop_when_told) for number in signals}
    try:
        yield stop
    finally:
        restore()
