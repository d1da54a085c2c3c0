"""Builds the five distributions, as wheels and as sdists: `python -m dev.wheels FOLDER`.

The native wheels come from the user's cache where a set-up has put them. That of Lucene comes once
for each Python; the others are for all of them. Those that contain libraries get the manylinux tag
of the oldest C library that they run with, which depends on the machine that has compiled them.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dev.bootstrap import VENV, survey
from dev.environment import Environment, wanted_installer
from dev.native import (
    HBASE,
    PARQUET_ROWS,
    PYLUCENE,
    SPARK_RULE,
    Project,
    cache_key,
    toolchain_of,
    user_wheel_cache,
)
from dev.paths import CONSTRAINTS, LOGS, ROOT
from dev.steps import StepFailed, Steps

OWN_PYTHON = None
"""The Python of the set-up."""

OTHER_PYTHONS = ("3.12",)
"""The Pythons that the wheels are for, besides that of the set-up. On 3.13, processes of
the tests ended abruptly."""

TOOLS = VENV / "release"
# Not in any manylinux policy: it comes with the JDK, where it is found when it is needed.
LIBJVM = "libjvm.so"


def build_all(
    into: Path, steps: Steps, pythons: Sequence[str | None] = (OWN_PYTHON,)
) -> list[Path]:
    """Puts the wheels of the service and of the other distributions into a folder.

    Args:
        into: the folder.
        steps: runs the commands.
        pythons: the Pythons to have a wheel of Lucene for, such as "3.12".

    Raises:
        StepFailed: a build failed, or a Python is not here and cannot be fetched.
    """
    cache = user_wheel_cache()
    machine = survey(cache)
    environment = Environment(VENV, steps, wanted_installer())
    into.mkdir(parents=True, exist_ok=True)

    def wheel_of(project: Project, python: str | None = OWN_PYTHON) -> Path:
        toolchain = toolchain_of(project, machine.jdk, machine.compiler)
        wheel = cache.find(project, cache_key(project, toolchain, python))
        if wheel is None:
            with steps.step(f"native wheel {project.distribution}"):
                wheel = cache.build(project, environment, machine.jdk, machine.compiler, python)
        return wheel

    rows = wheel_of(PARQUET_ROWS)
    lucene = [wheel_of(PYLUCENE, python) for python in pythons]
    rule = wheel_of(SPARK_RULE)
    with steps.step("manylinux tags"):
        environment.install_beside(CONSTRAINTS / "release.txt", TOOLS, log="release-tools")
        tagged = [tag_for_manylinux(each, into, environment, steps) for each in (rows, *lucene)]
    pure = Path(shutil.copy2(rule, into))
    own = {"hudi_index_service": ROOT, "hudi_index_hbase": HBASE.folder}
    for name, folder in own.items():
        with steps.step(f"wheel {name}"):
            environment.build_wheel(folder, into, log=name)
    return [*tagged, pure, *(next(into.glob(f"{name}-*.whl")) for name in own)]


def tag_for_manylinux(wheel: Path, into: Path, environment: Environment, steps: Steps) -> Path:
    """Writes the wheel to a folder with its manylinux tag, and returns its path there.

    Raises:
        StepFailed: it needs a library that not every Linux has.
    """
    name, version, python, *_ = wheel.stem.split("-")
    same = f"{name}-{version}-{python}-*.whl"
    for earlier in into.glob(same):
        earlier.unlink()
    command: list[str | Path] = [environment.python, "-m", "auditwheel", "repair"]
    command += ["--exclude", LIBJVM, "--wheel-dir", into, wheel]
    path = f"{TOOLS / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    env = {**os.environ, "PYTHONPATH": str(TOOLS), "PATH": path}
    steps.run(f"auditwheel-{name}", command, env=env)
    (tagged,) = into.glob(same)
    return tagged


def build_sdists(into: Path, steps: Steps) -> list[Path]:
    """Puts the sdists of the service and of the other distributions into a folder.

    Raises:
        StepFailed: a build failed.
    """
    environment = Environment(VENV, steps, wanted_installer())
    with steps.step("sdists"), tempfile.TemporaryDirectory() as scratch:
        # Copies have files where the projects have links to those at the top.
        others = (
            project.copied_to(Path(scratch, project.folder.name)).folder
            for project in (PARQUET_ROWS, PYLUCENE, SPARK_RULE, HBASE)
        )
        for source in (ROOT, *others):
            environment.build_sdist(source, into, log=f"sdist-{source.name}")
    return sorted(into.glob("hudi_index_*.tar.gz"))


def main(into: Path) -> None:
    """Builds everything and prints the paths."""
    steps = Steps(LOGS)
    try:
        wheels = build_all(into, steps, (OWN_PYTHON, *OTHER_PYTHONS))
        for built in (*wheels, *build_sdists(into, steps)):
            print(built)
    except StepFailed as failure:
        raise SystemExit(f"failed: {failure}") from None


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
