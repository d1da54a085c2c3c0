"""Python programs that run in processes of their own."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from socket import socket
from threading import Event
from time import monotonic
from typing import Any, TypeVar

from dev.daemon import Daemon

ROOT = Path(__file__).resolve().parents[1]

T = TypeVar("T")

Running = Callable[..., "subprocess.Popen[str]"]
"""Starts a program beside a test: the type of the fixture `running`, see `started`."""

Command = Callable[..., str]
"""Runs a command of `hudi-index`: the type of the fixture `command`."""


def ended(
    program: str, *arguments: object, module: bool = False, timeout: float = 250, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, from the repository's folder.

    Args:
        program: Its text; or the name of a module, if `module` is set.
        arguments: Its arguments, which are made texts.
        timeout: In seconds.
        environment: Variables in addition to those of the test.
    """
    return subprocess.run(
        [sys.executable, "-m" if module else "-c", program, *map(str, arguments)],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def lines_of(program: str, *arguments: object, **options: object) -> list[str]:
    """The lines that a program prints, as by `ended`, which has to end with the status 0."""
    done = ended(program, *arguments, **options)  # type: ignore[arg-type]
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout.splitlines()


def output_of(
    command: Sequence[object],
    environment: Mapping[str, str] | None = None,
    *,
    cwd: Path | None = None,
    timeout: float = 250,
) -> str:
    """What a command prints, which has to end with the status 0.

    Args:
        command: The program and its arguments, which are made texts.
        environment: All of its variables, by default those of the test.
        timeout: In seconds.
    """
    done = subprocess.run(
        list(map(str, command)),
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def started(
    stack: ExitStack, program: str, *arguments: object, **environment: str
) -> subprocess.Popen[str]:
    """Starts a program beside the test, which is killed when the stack is closed. Its streams are
    pipes."""
    process = stack.enter_context(
        subprocess.Popen(
            [sys.executable, "-u", "-c", program, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    )
    stack.callback(process.kill)
    return process


def logged(daemon: Daemon, pattern: str, seconds: float = 120) -> str:
    """The first group of a regular expression in a process's output, once it has been printed."""

    def found() -> Any:
        running = daemon.running()  # before the last look, which sees all
        match = re.search(pattern, daemon.log.read_text(errors="replace"))
        assert match or running, daemon.tail()
        return match

    return str(awaited(found, seconds, 0.1)[1])


def await_port(daemon: Daemon, port: int) -> None:
    """Waits until a process listens on a port of this machine."""

    def listens() -> bool:
        assert daemon.running(), daemon.tail()
        with socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    awaited(listens, pause=0.1)


def awaited(look: Callable[[], T], seconds: float = 200, pause: float = 0.002) -> T:
    """The first true result of a function that is called again and again."""
    waiting, end = Event(), monotonic() + seconds
    while not (seen := look()):
        assert monotonic() < end, f"not seen within {seconds} s"
        waiting.wait(pause)
    return seen
