"""One child process: started, given one order after the other, and ended, whatever it does."""

import logging
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from time import monotonic

from hudi_index_service.config import Settings
from hudi_index_service.errors import (
    BuildDied,
    BuildHung,
    BuildOutOfMemory,
    IndexServiceError,
)
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
from hudi_index_service.fleet.tracing import trace_of
from hudi_index_service.index.metadata.build_records import BuildProgress

log = logging.getLogger(__name__)

RUNNER = "hudi_index_service.fleet.builds.runner:run"

_MIB = 2**20
_NEAR = 0.9
"""Of its limit: the system kills a process that grows fast before its memory is read again."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What child processes may take.

    Attributes:
        slots: How many there are at most, each with one table at a time.
        memory_mb: The resident memory, in MiB, above which a child is ended.
        builds: The orders after which a child is replaced.
        idle_seconds: The time without an order after which it ends.
        grace_seconds: The time between SIGTERM and SIGKILL.
        tick_seconds: How often a running child is looked at.
    """

    slots: int = 2
    memory_mb: int = 4096
    builds: int = 50
    idle_seconds: float = 300.0
    grace_seconds: float = 30.0
    tick_seconds: float = 0.5


class Child:
    """A child process. Its methods are for one thread, which has to live as long as the child: the
    system kills a child when the thread that started it ends.

    Args:
        runner: What carries out an order, as ``module:function``.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, limits: Limits, runner: str = RUNNER) -> None:
        self._limits = limits
        self._pipe, theirs = os.pipe()
        module = "hudi_index_service.fleet.builds.child"
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(os.getpid()), str(theirs), runner],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs,),
                env=_environment(),
                # Ctrl-C at a terminal is for the service alone. Not a session of its own: Linux
                # shares the processor among sessions first, and a priority holds within one alone
                # (autogroups, sched(7)).
                process_group=0,
            )
        except OSError:
            os.close(self._pipe)
            raise
        finally:
            os.close(theirs)
        self.pid = self._process.pid
        self._unread = b""
        self._is_at_end = False
        self._orders = 0
        self._memory = 0
        self._kills = _out_of_memory_kills()

    @property
    def is_worn(self) -> bool:
        """Whether another child is to take the next order."""
        limits = self._limits
        return (
            self._is_at_end
            or self._process.poll() is not None
            or self._orders >= limits.builds
            or self._resident() > 0.75 * limits.memory_mb * _MIB
        )

    def run(
        self,
        order: Order,
        *,
        timeout: float,
        cancelled: Event,
        progress: Callable[[BuildProgress], None],
        counted: Callable[[Counted], None] = lambda counted: None,
    ) -> Ended:
        """Carries out an order.

        Args:
            timeout: The seconds without progress after which the child is ended.
            cancelled: Once it is set, the child is ended.
            progress: Called when the build has advanced.
            counted: Called with what the child has done since it last told.
        """
        self._orders += 1
        try:
            self._send(order)
        except OSError:  # it has died
            self._is_at_end = True
        advanced, done, ending, deadline = monotonic(), None, "", float("inf")
        while True:
            for message in self._messages(self._limits.tick_seconds):
                if isinstance(message, Ended) and message.request == order.request:
                    return self._ended(order, ending, message)
                if isinstance(message, Logged):
                    _log(message, order)
                if isinstance(message, Counted):
                    counted(message)
                if isinstance(message, Progressed):
                    if done != (done := message.progress.done):
                        advanced = monotonic()
                    progress(message.progress)
            if self._is_at_end:
                self.end()
                return self._ended(order, ending, None)
            if not ending:
                ending = self._why_end(cancelled, monotonic() - advanced > timeout)
                if ending:
                    self._process.terminate()
                    # What takes more and more memory gets no time.
                    grace = 0.0 if ending == "out_of_memory" else self._limits.grace_seconds
                    deadline = monotonic() + grace
            if monotonic() >= deadline:
                self._kill()

    def end(self) -> None:
        """Ends the child, by SIGTERM and then by SIGKILL."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(self._limits.grace_seconds)
        except subprocess.TimeoutExpired:
            self._kill()
            self._process.wait()
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe, self._is_at_end = -1, True

    def _kill(self) -> None:
        """Kills it and what it has started, such as spark-submit."""
        if self._process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)

    def _send(self, order: Order) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line_of(order))
        self._process.stdin.flush()

    def _messages(self, seconds: float) -> Iterator[Message]:
        """The messages that have come, or come within this time."""
        ready, _, _ = select.select([self._pipe], [], [], seconds) if self._pipe >= 0 else ([],) * 3
        if not ready:
            # A process that it started may hold the pipe open.
            self._is_at_end = self._process.poll() is not None
            return
        data = os.read(self._pipe, 65_536)
        self._is_at_end = not data
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            try:
                yield message_of(line)
            except ValueError:
                log.warning("A build's process (%d) sent what is no message.", self.pid)

    def _why_end(self, cancelled: Event, is_hung: bool) -> str:
        if cancelled.is_set():
            return "cancelled"
        if is_hung:
            return "hung"
        self._memory = self._resident()
        return "out_of_memory" if self._memory > self._limits.memory_mb * _MIB else ""

    def _resident(self) -> int:
        """Its resident memory, in bytes; the last known one if it has ended."""
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        except (OSError, IndexError):
            return self._memory
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def _ended(self, order: Order, ending: str, told: Ended | None) -> Ended:
        """The outcome, from why the child was ended, what it told, and how its process ended."""
        if ending:
            self.end()
        elif told is not None:
            if told.outcome == "interrupted":
                self.end()
                return told
            if told.outcome != "out_of_memory":
                return told
            self.end()  # who knows in what state it is
            ending = "out_of_memory"
        built = 0 if told is None else told.built
        if ending == "cancelled":
            return Ended(order.request, ending, built=built)
        error: IndexServiceError
        status = self._process.returncode
        if not ending and status == -signal.SIGKILL and self._is_for_memory():
            ending = "out_of_memory"
        if ending == "hung":
            error = BuildHung(f"{order.action} of {order.table} made no progress for too long.")
        elif ending == "out_of_memory":
            error = BuildOutOfMemory(
                f"{order.action} of {order.table} took all memory that it may: "
                f"{self._limits.memory_mb} MiB, or what the system had left."
            )
        else:
            ending = "died"
            error = BuildDied(f"{order.action} of {order.table} died: {_how(status)}.")
        return ended_by(order, error, outcome=ending, built=built)

    def _is_for_memory(self) -> bool:
        """Whether the system killed it for lack of memory, as far as can be known."""
        if self._memory > _NEAR * self._limits.memory_mb * _MIB:
            return True
        return _out_of_memory_kills() > self._kills


def _how(status: int) -> str:
    if status >= 0:
        return f"its process ended with the status {status}"
    try:
        return f"its process ended by {signal.Signals(-status).name}"
    except ValueError:  # a real-time signal
        return f"its process ended by the signal {-status}"


def _log(line: Logged, order: Order) -> None:
    logger = logging.getLogger(line.logger)
    if logger.isEnabledFor(line.level):
        extra = {
            "table": order.table,
            "build": order.request,
            "trigger": order.trigger,
            "trace": trace_of(order.traceparent),
        }
        logger.log(line.level, "%s", line.message, extra=extra)


def _environment() -> Mapping[str, str]:
    """This process's variables without the settings, which may hold the service's own secrets:
    those that a build needs come with its order."""
    section = "|".join(Settings.model_fields)
    ours = re.compile(rf"HUDI_INDEX_(CONFIG|({section})(__.*)?)", re.IGNORECASE)
    return {name: value for name, value in os.environ.items() if not ours.fullmatch(name)}


def _out_of_memory_kills() -> int:
    """The processes that the system has killed for lack of memory since it started."""
    try:
        counts = dict(
            line.split() for line in Path("/proc/vmstat").read_text().splitlines() if line
        )
    except (OSError, ValueError):
        return 0
    return int(counts.get("oom_kill", 0))
