"""The program of a child process: carries out orders, one after the other, until its parent closes
its standard input or dies.

    python -m hudi_index_service.fleet.builds.child PARENT PIPE RUNNER

PARENT is the parent's process id, PIPE the file descriptor for messages to it, RUNNER the function
that carries out an order, as ``module:function``. Whatever is secret comes with the orders.
"""

import ctypes
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from time import monotonic
from types import FrameType

from hudi_index_service.fleet.builds.messages import (
    Counted,
    Ended,
    Logged,
    Message,
    Order,
    Progressed,
    ended_by,
    line_of,
    message_of,
)
from hudi_index_service.fleet.tracing import Span, flush
from hudi_index_service.index.metadata.build_records import BuildProgress
from hudi_index_service.read.recording import QueryTaken, listen
from hudi_index_service.storage.store import requests_made

Progress = Callable[[BuildProgress], None]
Runner = Callable[[Order, Progress], Ended]
"""Carries out an order in the main thread. A cancellation raises KeyboardInterrupt in it."""

_SECONDS_BETWEEN_PROGRESS = 0.5
_SECONDS_TO_FLUSH = 1.0
_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <linux/prctl.h>
_FIRST_TO_DIE = b"1000"
_NICE = 10


class Pipe(logging.Handler):
    """Messages to the parent. As a log handler, it sends lines of the log: the parent's own log has
    one format, and knows the table."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._writing = Lock()
        self._told: Mapping[str, int] = {}
        self._queries: SimpleQueue[QueryTaken] = SimpleQueue()
        listen(self._queries.put)

    def send(self, message: Message) -> None:
        """Sends a message."""
        data = line_of(message)
        with self._writing:
            while data:
                data = data[os.write(self._descriptor, data) :]

    def count(self, request: str) -> None:
        """Sends the requests to stores, and the queries, since this was last called. Told with each
        progress, so that a child that is killed takes few of them along."""
        made = {str(name): number for name, number in requests_made().items()}
        new = {name: number - self._told.get(name, 0) for name, number in made.items()}
        self._told = made
        requests = {name: number for name, number in new.items() if number}
        queries = [asdict(self._queries.get()) for _ in range(self._queries.qsize())]
        if requests or queries:
            self.send(Counted(request, requests, queries))

    def emit(self, record: logging.LogRecord) -> None:
        """Sends a line of the log."""
        self.send(Logged(record.levelno, record.name, self.format(record)))


class _Orders:
    """The orders that come, and what SIGTERM does meanwhile."""

    def __init__(self) -> None:
        # A library must not read the orders, nor what it prints get to the parent's output.
        self._descriptor = os.dup(0)
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(2, 1)
        self._queue: SimpleQueue[Order | None] = SimpleQueue()
        self._running = False
        Thread(target=self._read, name="orders", daemon=True).start()
        signal.signal(signal.SIGTERM, self._on_sigterm)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def run_each(self, run: Callable[[Order], None]) -> None:
        """Runs each order, until the parent closes the pipe."""
        while (order := self._queue.get()) is not None:
            self._running = True
            try:
                run(order)
            finally:
                self._running = False

    def _read(self) -> None:
        with os.fdopen(self._descriptor, "rb") as lines:
            for line in lines:
                message = message_of(line)
                assert isinstance(message, Order), "the parent sends orders"
                self._queue.put(message)
        if self._running:  # nobody waits for its outcome
            os._exit(1)
        self._queue.put(None)

    def _on_sigterm(self, number: int, frame: FrameType | None) -> None:
        if not self._running:
            os._exit(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt


def main(parent: int, descriptor: int, runner: str) -> None:
    """Carries out orders until the standard input ends."""
    _die_with(parent)
    os.nice(_NICE)  # what the service answers comes first: see `Child`
    os.set_inheritable(descriptor, False)
    orders = _Orders()
    pipe = Pipe(descriptor)
    logging.getLogger().addHandler(pipe)
    module, _, name = runner.partition(":")
    run: Runner = getattr(import_module(module), name)

    def carry_out(order: Order) -> None:
        span = Span(f"{order.action} in its process", parent=order.traceparent)
        with span.present():
            ended = carried_out(run, order, pipe)
        code = "" if ended.error is None else ended.error.code
        span.end(code, outcome=ended.outcome, built=ended.built)
        pipe.count(order.request)
        pipe.send(ended)
        flush(_SECONDS_TO_FLUSH)

    with suppress(KeyboardInterrupt):  # SIGTERM, while the outcome was told
        orders.run_each(carry_out)


def carried_out(run: Runner, order: Order, pipe: Pipe) -> Ended:
    """Carries out an order, and tells its progress and its log by the pipe. Returns how it ended,
    whatever it raised."""
    logging.getLogger().setLevel(order.log_level)
    # At info, the service itself says when a build begins and ends; each entry is a detail.
    details = logging.getLogger("hudi_index_service.build.run")
    details.setLevel(logging.WARNING if order.log_level == logging.INFO else logging.NOTSET)
    last = 0.0

    def progress(now: BuildProgress) -> None:
        nonlocal last
        # The last one tells that all is done.
        if now.files_done == now.files or monotonic() - last >= _SECONDS_BETWEEN_PROGRESS:
            last = monotonic()
            pipe.count(order.request)
            pipe.send(Progressed(order.request, now))

    try:
        return run(order, progress)
    except KeyboardInterrupt:
        return Ended(order.request, "interrupted")
    except MemoryError:
        return Ended(order.request, "out_of_memory", broke_off=True)
    except Exception as error:
        logging.getLogger(__name__).exception("%s of %s failed.", order.action, order.table)
        return ended_by(order, error)


def _die_with(parent: int) -> None:
    """Has Linux kill this process when the thread that started it ends, and for lack of memory kill
    this one first, and not the service. Elsewhere, the end of its input ends it."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # it died before
        os._exit(1)
    Path("/proc/self/oom_score_adj").write_bytes(_FIRST_TO_DIE)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
