"""A contestant in a process of its own, which answers one line of JSON with one line of JSON."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from benchmarks.bench_table import ROOT

INSTALLED = ROOT / ".venv" / "bench"


class AnsweringProcess:
    """The asking side.

    Args:
        module: Run by ``python -m``; it calls `answer_lines`.
        arguments: Of the module.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{INSTALLED}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request. Ends this process if the other one has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._process.args} ended at the request {str(request)[:200]}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """Ends the other process."""
        self._process.communicate()


def answer_lines(answering: Callable[[], Callable[[dict[str, Any]], dict[str, Any]]]) -> None:
    """The answering side: answers until there are no more requests.

    Args:
        answering: Prepares, and returns what answers a request.
    """
    # What libraries and virtual machines print is not for the asking side.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    answer = answering()
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)
