"""Programs that run beside a test, and end with it."""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def started(
    stack: ExitStack, program: str, *arguments: str, **environment: str
) -> subprocess.Popen[str]:
    """Starts a Python program, which is killed when the stack is closed.

    Args:
        program: Its text.
        environment: Variables in addition to those of the test.
    """
    process = stack.enter_context(
        subprocess.Popen(
            [sys.executable, "-u", "-c", program, *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    )
    stack.callback(process.kill)
    return process
