"""The oracle: the service as of a fixed commit, in an environment of its own below ``.venv``.

Tests and benchmarks compare the working tree with it. `python -m dev.oracle` makes it where it is
missing: the commit's own set-up runs on a copy of its files, with the native wheels of the cache.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

from dev.bootstrap import VENV
from dev.paths import ROOT

COMMIT = "0a9c30fa791ff19306f9c9e9674ea0afc7716fb1"
FOLDER = VENV / "oracle" / COMMIT[:12]
PYTHON = FOLDER / ".venv" / "bin" / "python"
_READY = FOLDER / "ready"
# Neither is part of the service, and the working tree's are run in its environment.
_LEFT_OUT = ("tests", "benchmarks", "docs")


class NoHistory(Exception):
    """The checkout does not have an earlier commit."""


def made() -> Path:
    """The oracle's folder, made first if it is missing: seconds, or minutes if native wheels of its
    commit have to be built.

    Raises:
        NoHistory: This is no clone with the commit in its history.
        subprocess.CalledProcessError: Its set-up failed; it has said why.
    """
    if not _READY.is_file():
        excluded = (f":(exclude){each}" for each in _LEFT_OUT)
        archive = archived(COMMIT, ".", *excluded)
        shutil.rmtree(FOLDER, ignore_errors=True)
        with tarfile.open(fileobj=BytesIO(archive)) as files:
            files.extractall(FOLDER, filter="data")
        command = [sys.executable, "-m", "dev.bootstrap", "demo"]
        subprocess.run(command, cwd=FOLDER, env=_plain(), stdout=sys.stderr, check=True)
        _READY.touch()
    return FOLDER


def environment() -> dict[str, str]:
    """The variables of a process that runs modules of this checkout's ``tests`` or ``benchmarks``
    by `PYTHON`, in the folder `FOLDER`."""
    return {**_plain(), "PYTHONPATH": f"{FOLDER}:{ROOT}", "PYSPARK_PYTHON": str(PYTHON)}


def _plain() -> dict[str, str]:
    others = ("VIRTUAL_ENV", "PYTHONPATH", "MAKEFLAGS")
    return {name: value for name, value in os.environ.items() if name not in others}


def archived(commit: str, *paths: str) -> bytes:
    """Files as of a commit, in the format of tar.

    Raises:
        NoHistory: This is no clone with the commit in its history.
    """
    command = ["git", "archive", commit, "--", *paths]
    try:
        found = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as failure:
        why = getattr(failure, "stderr", b"").decode().strip() or str(failure)
        raise NoHistory(
            f"Files of commit {commit} are wanted, which is not to be had here: {why}. "
            "Clone the repository with its history (git fetch --unshallow)."
        ) from failure
    return found.stdout


if __name__ == "__main__":
    try:
        print(made())
    except (NoHistory, subprocess.CalledProcessError) as failed:
        raise SystemExit(str(failed)) from None
