"""Reads ahead: what an iterator yields is made in a thread of its own, a few items at most."""

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from queue import Empty, Queue
from threading import Event, Thread
from typing import TypeVar

Item = TypeVar("Item")

_END = object()


@contextmanager
def read_ahead(
    items: Generator[Item, None, None], *, depth: int
) -> Generator[Iterator[Item], None, None]:
    """The items of a generator, up to `depth` of which are made before they are asked for.

    The generator runs in the thread alone, and is closed there. Leaving the block ends it; what it
    raises is raised where the next item would have come.
    """
    waiting: Queue[object] = Queue(maxsize=depth)
    unwanted = Event()

    def run() -> None:
        with closing(items):
            try:
                for item in items:
                    waiting.put(item)
                    if unwanted.is_set():
                        return
                waiting.put(_END)
            except BaseException as error:  # noqa: BLE001 - raised again by whoever reads
                waiting.put(_Failure(error))

    def ready() -> Iterator[Item]:
        while (item := waiting.get()) is not _END:
            if isinstance(item, _Failure):
                raise item.error
            yield item  # type: ignore[misc]  # nothing else was put in

    thread = Thread(target=run, name="index-build-read", daemon=True)
    thread.start()
    try:
        yield ready()
    finally:
        unwanted.set()
        while thread.is_alive():
            try:
                waiting.get(timeout=0.05)  # the thread may be waiting for room
            except Empty:
                continue
        thread.join()


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error
