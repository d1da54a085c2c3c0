"""One Java process of a server, which can be frozen, and does not outlive this process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

GUARD = Path(__file__).with_name("guard.py")
TAIL_LINES = 30

LOGGING = """\
log4j.rootLogger=INFO,c
log4j.appender.c=org.apache.log4j.ConsoleAppender
log4j.appender.c.target=System.err
log4j.appender.c.layout=org.apache.log4j.PatternLayout
log4j.appender.c.layout.ConversionPattern=%d{ISO8601} %-5p [%t] %c{2}: %.1000m%n
"""
"""The file `log4j.properties` of servers that log to their standard error."""


def run_until_interrupted(server: AbstractContextManager[T], where: Callable[[T], str]) -> None:
    """Starts a server, prints where it is, and waits for Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with server as running:
        print(f"{where(running)}. Ctrl-C ends it.", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            return


class Daemon:
    """A command that runs until it is stopped or killed."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        """Starts it.

        Args:
            command: The program and its arguments.
            log: Its output is appended.
        """
        self.log = log
        with log.open("ab") as output:
            self._guard = subprocess.Popen(
                [sys.executable, str(GUARD), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                # Signals of the terminal reach neither; closing the pipe does.
                start_new_session=True,
            )
        assert self._guard.stdout is not None
        self.pid = int(self._guard.stdout.readline())
        self._frozen = False

    def running(self) -> bool:
        """Whether it has not ended, frozen or not."""
        return self._guard.poll() is None

    def freeze(self) -> None:
        """Stops it where it is: its sockets stay open, and nothing answers."""
        os.kill(self.pid, signal.SIGSTOP)
        self._frozen = True

    def thaw(self) -> None:
        """Lets it go on, if it was frozen."""
        if self._frozen:
            os.kill(self.pid, signal.SIGCONT)
            self._frozen = False

    def stop(self, seconds: float = 60) -> None:
        """Asks it to end, and kills it if it has not after so many seconds."""
        if not self.running():
            return self._ended()
        self.thaw()
        os.kill(self.pid, signal.SIGTERM)
        try:
            self._guard.wait(seconds)
        except subprocess.TimeoutExpired:
            return self.kill()
        self._ended()

    def kill(self) -> None:
        """Ends it at once, as a crash does."""
        if self.running():
            os.kill(self.pid, signal.SIGKILL)
            self._guard.wait(60)
        self._ended()

    def _ended(self) -> None:
        self._frozen = False
        for pipe in (self._guard.stdin, self._guard.stdout):
            if pipe is not None:
                pipe.close()

    def tail(self) -> str:
        """The end of its output."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(f"  | {line}" for line in lines[-TAIL_LINES:])
