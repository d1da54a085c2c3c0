"""Python programs that run in processes of their own."""

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

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
