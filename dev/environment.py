"""The checkout's virtual environment, filled by uv, or by pip where uv is not to be had."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dev.paths import CONSTRAINTS, ROOT
from dev.prerequisites import Jdk
from dev.steps import StepFailed, Steps

INSTALLERS = ("uv", "pip")


class Environment:
    """A virtual environment that is whole: a run cut short while changing it makes it anew."""

    def __init__(self, folder: Path, steps: Steps, wanted: str = "uv") -> None:
        """
        Args:
            folder: where the environment lies or will lie.
            steps: runs the commands.
            wanted: "pip" does without uv; "uv" does with pip where uv cannot be installed.
        """
        self.folder = folder
        self.python = folder / "bin" / "python"
        self._uv = folder / "bin" / "uv"
        self._steps = steps
        self._wanted = wanted
        self._changing = folder / ".changing"

    @property
    def packages(self) -> Path:
        """The folder that packages are installed to."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.folder / "lib" / version / "site-packages"

    def prepare(self) -> None:
        """Creates the environment if it is absent, broken or half-changed, and its installer."""
        if not self._usable():
            with self._steps.step(f"virtual environment {self.folder.name}"):
                self._steps.run("venv", [sys.executable, "-m", "venv", "--clear", self.folder])
        if self._wanted == "uv":
            try:
                self._ensure_tool("uv")
            except StepFailed as failure:
                self._steps.say(f"uv cannot be installed, going on with pip\n{failure}")
        if self._installer == "pip":
            self._ensure_tool("pip")

    @property
    def _installer(self) -> str:
        return "uv" if self._wanted == "uv" and self._uv.exists() else "pip"

    def _usable(self) -> bool:
        """Whether it is of the running Python, has pip, and no change of it was cut short."""
        if self._changing.exists() or not self.python.exists():
            return False
        probe = "import pip, sys; print(sys.version_info[:3], sys.prefix)"
        answer = subprocess.run([self.python, "-c", probe], capture_output=True, text=True)
        wanted = f"{sys.version_info[:3]} {self.folder}"
        return answer.returncode == 0 and answer.stdout.strip() == wanted

    def _ensure_tool(self, name: str) -> None:
        pin = pinned(CONSTRAINTS / "tools.txt", name)
        probe = f"from importlib.metadata import version; print(version({name!r}))"
        answer = subprocess.run([self.python, "-c", probe], capture_output=True, text=True)
        if answer.stdout.strip() != pin:
            with self._steps.step(f"{name} {pin}"), self._change():
                command = [*_pip(self.python), "install", "--no-deps", f"{name}=={pin}"]
                self._steps.run(f"tool-{name}", command)

    @contextmanager
    def _change(self) -> Iterator[None]:
        """Marks the environment while packages come and go; a mark left behind condemns it."""
        self._changing.touch()
        yield
        self._changing.unlink()

    def install(self, *requirements: str | Path, log: str, afresh: bool = False) -> None:
        """Installs exactly what is named, dependencies not followed.

        Args:
            requirements: arguments as pip and uv share them (`-r file`, `-e .`, wheels).
            log: name of the log file.
            afresh: also when the same version is there already.
        """
        command = [*self._packages("install"), "--no-deps", *self._build_constraint()]
        if afresh:
            command.append("--reinstall" if self._installer == "uv" else "--force-reinstall")
        with self._change():
            self._steps.run(log, [*command, *requirements], env=generous(), cwd=ROOT)

    def install_beside(self, requirements: Path, folder: Path, log: str) -> None:
        """Installs the packages of a file into a folder of their own: what is only run, as
        `python -m`, and not to be mixed with the rest."""
        command = [*self._packages("install"), "--no-deps", "--target", folder, "-r", requirements]
        self._steps.run(log, command, env=generous(), cwd=ROOT)

    def run(self, module: str, log: str) -> None:
        """Runs one of this checkout's modules by the environment's Python."""
        self._steps.run(log, [self.python, "-m", module], cwd=ROOT)

    def check(self) -> None:
        """Every package finds the versions it asks for.

        Raises:
            StepFailed: one does not.
        """
        self._steps.run("check", self._packages("check"))

    def build_wheel(
        self,
        source: Path,
        into: Path,
        log: str,
        *,
        env: Mapping[str, str] | None = None,
        constrained: bool = True,
        gives_way: bool = False,
        python: str | None = None,
    ) -> None:
        """Builds the wheel of a project folder in an isolated environment.

        Args:
            source: folder with the project's pyproject.toml.
            into: folder that receives the wheel.
            log: name of the log file.
            env: variables of the build, over those of this process.
            constrained: hold build tools to constraints/build.txt; without, the project pins
                them itself.
            gives_way: as in `Steps.run`.
            python: an interpreter, or a version that uv fetches, to build with; by default that of
                the environment.

        Raises:
            StepFailed: it failed, or another Python is wanted and there is no uv.
        """
        if self._installer == "uv":
            command = self._uv_build("--wheel", into, python)
        elif python:
            raise StepFailed(f"{log}: only uv, which is not installed here, builds with {python}")
        else:
            command = [*_pip(self.python), "wheel", "--no-deps", "--wheel-dir", into]
        if constrained:
            command += self._build_constraint()
        variables = {**generous(), **(env or {})}
        self._steps.run(log, [*command, source], env=variables, gives_way=gives_way)

    def build_sdist(self, source: Path, into: Path, log: str) -> None:
        """Builds the source distribution of a project folder.

        Raises:
            StepFailed: it failed, or there is no uv: pip builds none.
        """
        if self._installer != "uv":
            raise StepFailed(f"{log}: sdists are built by uv, which is not installed here")
        self._steps.run(log, [*self._uv_build("--sdist", into), source], env=generous())

    def _uv_build(self, kind: str, into: Path, python: str | None = None) -> list[str | Path]:
        return [self._uv, "build", kind, "--python", python or self.python, "--out-dir", into]

    def _packages(self, action: str) -> list[str | Path]:
        if self._installer == "uv":
            return [self._uv, "pip", action, "--python", self.python]
        return [*_pip(self.python), action]

    def _build_constraint(self) -> list[str | Path]:
        option = "--build-constraints" if self._installer == "uv" else "--build-constraint"
        return [option, CONSTRAINTS / "build.txt"]

    def write_activation(self, jdk: Jdk, hudi_jar: Path) -> Path:
        """Writes what the demo, the tests and a developer's shell set before they run."""
        script = self.folder / "environment.sh"
        paths = {
            "venv": self.folder,
            "bin": self.folder / "bin",
            "python": self.python,
            "jdk": jdk.home,
            "jar": hudi_jar,
        }
        quoted = {name: shlex.quote(str(path)) for name, path in paths.items()}
        script.write_text(
            "# Written by dev/bootstrap.py. To be sourced: . .venv/environment.sh\n"
            f"export VIRTUAL_ENV={quoted['venv']}\n"
            f"export JAVA_HOME={quoted['jdk']}\n"
            f"export HUDI_INDEX_HUDI_JAR={quoted['jar']}\n"
            f"export PYSPARK_PYTHON={quoted['python']} PYSPARK_DRIVER_PYTHON={quoted['python']}\n"
            f'export PATH={quoted["bin"]}:"$JAVA_HOME/bin:$PATH"\n'
            "# Another Spark on the machine would be used in place of the pinned one.\n"
            "unset SPARK_HOME\n"
        )
        return script


def _pip(python: Path) -> list[str | Path]:
    return [python, "-m", "pip", "--disable-pip-version-check", "--no-input"]


def generous() -> dict[str, str]:
    """The process's environment, with time and tries enough for Spark's 300 MB on a slow line."""
    patience = {"UV_HTTP_TIMEOUT": "300", "UV_HTTP_RETRIES": "8", "PIP_DEFAULT_TIMEOUT": "300"}
    return {**patience, **os.environ}


def pinned(constraints: Path, name: str) -> str:
    """The version that a constraints file pins a package to."""
    found = re.search(rf"^{re.escape(name)}==(\S+)", constraints.read_text(), re.MULTILINE)
    if not found:
        raise LookupError(f"{constraints} does not pin {name}")
    return found.group(1)


def wanted_installer() -> str:
    """What INSTALLER asks for: uv unless it says pip."""
    name = os.environ.get("INSTALLER") or "uv"
    if name not in INSTALLERS:
        raise SystemExit(f"INSTALLER={name}: it has to be one of {', '.join(INSTALLERS)}")
    return name
