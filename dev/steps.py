"""Steps of a set-up: a line when one begins and ends, a log for each command."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

TAIL_LINES = 25


class StepFailed(Exception):
    """A command of a step ended badly; the message holds the tail of its log and where it lies."""


class Steps:
    """Reports the steps of one run and owns the processes they start."""

    def __init__(self, logs: Path, held: int | None = None) -> None:
        """
        Args:
            logs: folder of the log files, one for each name given to `run`.
            held: file descriptor of the checkout's lock. Commands inherit it, so that
                whatever outlives a killed run still keeps the next one waiting.
        """
        self._logs = logs
        self._held = (held,) if held is not None else ()
        self._began = time.monotonic()
        self._guard = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def say(self, line: str) -> None:
        """Prints a line after the seconds since the run began."""
        with self._guard:
            print(f"{time.monotonic() - self._began:7.1f} s  {line}", flush=True)

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Says that `title` begins, and when it is done how long it took."""
        began = time.monotonic()
        self.say(f"{title} ...")
        yield
        self.say(f"{title}: done in {time.monotonic() - began:.1f} s")

    def run(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        gives_way: bool = False,
    ) -> None:
        """Runs a command with its output going to `<logs>/<name>.log`.

        Args:
            name: name of the log.
            command: the program and its arguments.
            env: all its environment variables; without, those of this process.
            cwd: its working folder.
            gives_way: leave the processors to steps that take longer, as long as these use them.

        Raises:
            StepFailed: it ended with another code than 0, or the run was stopped.
        """
        self._logs.mkdir(parents=True, exist_ok=True)
        log = self._logs / f"{name}.log"
        with log.open("wb") as output:
            with self._guard:
                if self._stopped:
                    raise StepFailed(f"{name}: not started, another step has failed")
                process = subprocess.Popen(
                    [*(("nice",) if gives_way else ()), *map(str, command)],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=env,
                    cwd=cwd,
                    pass_fds=self._held,
                    # A group of its own, so that `stop` reaches the compilers below it too.
                    start_new_session=True,
                )
                self._running.add(process)
            code = process.wait()
        with self._guard:
            self._running.discard(process)
            stopped = self._stopped
        if code != 0:
            ending = "stopped" if stopped else f"ended with code {code}"
            raise StepFailed(f"{name}: {ending}\n{_tail(log)}\nThe full log: {log}")

    def stop(self) -> None:
        """Ends every command still running; later ones are not started."""
        with self._guard:
            self._stopped = True
            for process in self._running:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGTERM)


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    return "\n".join(f"  | {line}" for line in lines[-TAIL_LINES:])
