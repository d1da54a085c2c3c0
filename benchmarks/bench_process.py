"""A contestant in a process of its own: a line of JSON for each request and each response."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.bench_table import ROOT

INSTALLED = ROOT / ".venv" / "bench"


class ContestantProcess:
    """The client side of a contestant.

    Args:
        module: Run by ``python -m``; it calls `serve`.
        arguments: Command-line arguments of the module.
        frozen: The interpreter, working folder and variables of another environment.
    """

    def __init__(
        self,
        module: str,
        *arguments: str,
        frozen: tuple[Path, Path, dict[str, str]] | None = None,
    ) -> None:
        present = {**os.environ, "PYTHONPATH": f"{ROOT}:{INSTALLED}"}
        python, folder, variables = frozen or (Path(sys.executable), ROOT, present)
        self._process = subprocess.Popen(
            [python, "-m", module, *arguments],
            cwd=folder,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def request(self, request: dict[str, Any]) -> dict[str, Any]:
        """Sends a request and returns the response. Exits if the contestant has exited."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._process.args} ended at the request {str(request)[:200]}")
        response: dict[str, Any] = json.loads(line)
        return response

    def close(self) -> None:
        """Ends the contestant's process."""
        self._process.communicate()


def serve(prepare: Callable[[], Callable[[dict[str, Any]], dict[str, Any]]]) -> None:
    """The contestant's side: handles requests until there are no more.

    Args:
        prepare: Returns the handler of requests.
    """
    # Libraries and virtual machines print to stderr, so that stdout contains only responses.
    responses = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    handle = prepare()
    for line in sys.stdin:
        print(json.dumps(handle(json.loads(line))), file=responses, flush=True)
