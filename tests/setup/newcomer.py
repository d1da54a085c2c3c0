"""Somebody who has just installed the wheels, in an environment that holds nothing else."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from time import perf_counter

from dev.bootstrap import VENV
from dev.environment import generous
from dev.paths import CONSTRAINTS

UV = VENV / "bin" / "uv"


class Newcomer:
    """Somebody with a Python, a JDK and the wheels."""

    def __init__(self, folder: Path, python: str, java: Path) -> None:
        self.times: dict[str, float] = {}
        self._python = python
        self._bin = folder / "environment" / "bin"
        self._desk = folder / "empty folder"
        self._desk.mkdir()
        ours = ("HUDI_INDEX_", "PYTHON", "PYSPARK_", "SPARK_", "VIRTUAL_ENV", "XDG_")
        # What is left says how to reach the network.
        inherited = {name: each for name, each in os.environ.items() if not name.startswith(ours)}
        self._environ = {
            **inherited,
            "HOME": str(folder),
            "JAVA_HOME": str(java),
            "PATH": f"{self._bin}:/usr/bin:/bin",
        }

    def install(self, *wheels: Path, extra: str = "") -> None:
        """Installs the wheels, with what an extra such as "[demo]" needs, at the versions that are
        tested."""
        began = perf_counter()
        create: list[str | Path] = [UV, "venv", "--quiet", "--python", self._python]
        subprocess.run([*create, self._bin.parent], check=True)
        requirements = [
            f"{wheel.name.split('-')[0]}{extra if 'service' in wheel.name else ''} @ "
            f"{wheel.as_uri()}"
            for wheel in wheels
        ]
        self.pip("install", "--constraint", CONSTRAINTS / "demo.txt", *requirements)
        self.times["install"] = perf_counter() - began

    def pip(self, action: str, *arguments: str | Path) -> None:
        """Installs or uninstalls, as pip would."""
        command = [UV, "pip", action, "--quiet", "--python", self._bin / "python", *arguments]
        done = subprocess.run(command, env=generous(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]

    def run(self, *arguments: str, status: int = 0) -> str:
        """What `hudi-index` prints. It has to end with the status, without a traceback or a cut
        value."""
        began = perf_counter()
        done = self._done("hudi-index", *arguments)
        self.times[arguments[0]] = perf_counter() - began
        assert done.returncode == status, done.stdout[-2000:] + done.stderr[-2000:]
        assert "Traceback" not in done.stdout + done.stderr
        assert not re.search(r"\w…", done.stdout), "a value was cut"
        return done.stdout + (done.stderr if status else "")

    def python(self, program: str, *arguments: str) -> str:
        """What a program of theirs prints. It has to succeed."""
        done = self._done("python", "-c", program, *arguments)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    def _done(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [name, *arguments],
            cwd=self._desk,
            env=self._environ,
            executable=self._bin / name,
            capture_output=True,
            text=True,
            timeout=600,
        )


def rows(lines: str) -> list[str]:
    """Lines in an order of their own: that of rows is nobody's promise."""
    return sorted(lines.splitlines())
