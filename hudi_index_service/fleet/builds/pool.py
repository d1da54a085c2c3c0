"""What takes the fleet's orders: a few child processes, or threads. A child starts when it is first
needed, serves some orders, and ends when there is nothing to do, so that an idle service has no
JVM."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Thread
from time import monotonic

from hudi_index_service.errors import BuildDied
from hudi_index_service.fleet.builds.messages import Counted, Ended, Order, ended_by
from hudi_index_service.fleet.builds.process import RUNNER, Child, Limits
from hudi_index_service.index.metadata.build_records import BuildProgress
from hudi_index_service.process import control_group_limits

log = logging.getLogger(__name__)

_PAUSE_SECONDS = 1.0
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Job:
    """An order, and who waits for it.

    Attributes:
        timeout: The seconds without progress after which it counts as hung.
        progress: Called when it has advanced, in the slot's thread.
        ended: Called once when it has ended, in the slot's thread.
        cancelled: Set to cancel it.
        counted: Called with what its process has done since it last told, in the slot's thread.
    """

    order: Order
    timeout: float
    progress: Callable[[BuildProgress], None]
    ended: Callable[[Ended], None]
    cancelled: Event = field(default_factory=Event)
    counted: Callable[[Counted], None] = lambda counted: None


Take = Callable[[float], Job | None]
"""Waits for the next job, at most so many seconds; None if there is none."""


class Slots:
    """Some slots, each with a thread that runs one job at a time.

    Args:
        take: Gives the jobs; called in several threads.
        slots: Their number.
        idle_seconds: The time without a job after which a slot lets go of what it holds.
    """

    def __init__(self, take: Take, slots: int, idle_seconds: float) -> None:
        self._take = take
        self._idle_seconds = idle_seconds
        self._is_closing = Event()
        # Daemon threads: a hanging build must not keep the interpreter from exiting.
        self._threads = [
            Thread(target=self._serve, args=(slot,), name=f"fleet-slot-{slot}", daemon=True)
            for slot in range(slots)
        ]

    def start(self) -> None:
        """Starts the threads, and no process."""
        for thread in self._threads:
            thread.start()

    def pids(self) -> list[int]:
        """The processes that exist."""
        return []

    def _run(self, slot: int, job: Job) -> Ended:
        """Runs a job."""
        raise NotImplementedError

    def _end(self, slot: int) -> None:
        """Lets go of what a slot holds."""

    def stop(self) -> None:
        """Takes no further job."""
        self._is_closing.set()

    @property
    def is_stopped(self) -> bool:
        """Whether no further job is taken."""
        return self._is_closing.is_set()

    def close(self) -> None:
        """Takes no further job, and returns once the running ones have ended, with no process
        left."""
        self.stop()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _serve(self, slot: int) -> None:
        idle_since = monotonic()
        try:
            while not self._is_closing.is_set():
                try:
                    job = self._take(self._idle_seconds)
                    if job is not None:
                        job.ended(self._run(slot, job))
                        idle_since = monotonic()
                except Exception:  # the slot serves the other tables all the same
                    log.exception("A slot of the fleet's builds failed.")
                    self._is_closing.wait(_PAUSE_SECONDS)
                if monotonic() - idle_since >= self._idle_seconds:
                    self._end(slot)
        finally:
            self._end(slot)


class Threads(Slots):
    """Runs jobs in threads of this process, where they can be neither ended nor cancelled: for what
    no child can have, such as a Spark session.

    Args:
        run: Carries out an order.
    """

    def __init__(
        self,
        take: Take,
        slots: int,
        run: Callable[[Order, Callable[[BuildProgress], None]], Ended],
    ) -> None:
        super().__init__(take, slots, idle_seconds=60.0)
        self._carry_out = run

    def _run(self, slot: int, job: Job) -> Ended:
        try:
            return self._carry_out(job.order, job.progress)
        except Exception as error:
            log.exception("%s of %s failed.", job.order.action, job.order.table)
            return ended_by(job.order, error)


class Pool(Slots):
    """Runs jobs in child processes, one for each slot.

    Args:
        take: As for `Slots`.
        runner: As for `Child`.
    """

    def __init__(self, take: Take, limits: Limits, *, runner: str = RUNNER) -> None:
        super().__init__(take, limits.slots, limits.idle_seconds)
        self._limits = limits
        self._runner = runner
        self._children: dict[int, Child | None] = dict.fromkeys(range(limits.slots))

    def pids(self) -> list[int]:
        """The processes that exist."""
        return [child.pid for child in list(self._children.values()) if child is not None]

    def _run(self, slot: int, job: Job) -> Ended:
        child = self._children[slot]
        if child is not None and child.is_worn:
            self._end(slot)
            child = None
        try:
            if child is None:
                child = self._children[slot] = Child(self._limits, self._runner)
            return child.run(
                job.order,
                timeout=job.timeout,
                cancelled=job.cancelled,
                progress=job.progress,
                counted=job.counted,
            )
        except Exception as error:
            log.exception("%s of %s cannot be run.", job.order.action, job.order.table)
            self._end(slot)
            failure = BuildDied(f"Its process cannot be run: {error}.")
            return ended_by(job.order, failure, outcome="died")

    def _end(self, slot: int) -> None:
        child, self._children[slot] = self._children[slot], None
        if child is not None:
            child.end()


def fitting(limits: Limits, *, most: int, is_least: bool = False) -> Limits:
    """The limits with as many slots as the memory that is free now, and the processors, allow: one
    at least, and not more than `most`.

    Args:
        is_least: Whether each slot may take more than its limit of memory: its share of what is
            free.
    """
    memory = min(_memory(), default=most * limits.memory_mb * _MIB)
    by_memory = memory // (limits.memory_mb * _MIB)
    slots = max(1, min(most, by_memory, len(os.sched_getaffinity(0))))
    share = memory // _MIB // slots if is_least else 0
    return replace(limits, slots=slots, memory_mb=max(limits.memory_mb, share))


def _memory() -> Iterator[int]:
    """The bytes that are free now, and the limits of this process's control groups, as far as they
    are known."""
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                yield int(line.split()[1]) * 1024
    yield from control_group_limits()
