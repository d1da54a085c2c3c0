"""Reads ahead: a separate thread produces the next few items of a generator."""

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
    """The items of a generator, with up to `depth` items produced in advance.

    The generator runs only in the thread, and is closed there. Leaving the block ends it. An
    exception that it raises is raised in place of the next item.
    """
    queue: Queue[object] = Queue(maxsize=depth)
    stopped = Event()

    def run() -> None:
        with closing(items):
            try:
                for item in items:
                    queue.put(item)
                    if stopped.is_set():
                        return
                queue.put(_END)
            except BaseException as error:  # noqa: BLE001 - raised again by the reader
                queue.put(_Failure(error))

    def ready() -> Iterator[Item]:
        while (item := queue.get()) is not _END:
            if isinstance(item, _Failure):
                raise item.error
            yield item  # type: ignore[misc]  # nothing else was put in

    thread = Thread(target=run, name="index-build-read", daemon=True)
    thread.start()
    try:
        yield ready()
    finally:
        stopped.set()
        while thread.is_alive():
            try:
                queue.get(timeout=0.05)  # the thread may be waiting for a free slot
            except Empty:
                continue
        thread.join()


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error
