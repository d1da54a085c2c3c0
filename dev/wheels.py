"""Builds the six distributions, as wheels and as sdists: `python -m dev.wheels FOLDER`.

The native wheels come from the user's cache where a set-up has put them, and get the manylinux tag
of the oldest C library that they run with. That of Lucene comes once for each Python; the others
are for all Pythons. The row reader of a set-up runs with the C library of the machine that has
compiled it; for a release, zig compiles it for older ones, and for ARM.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dev.bootstrap import VENV, survey
from dev.environment import Environment, wanted_installer
from dev.native import (
    PARQUET_ROWS,
    PLUGINS,
    PYLUCENE,
    SPARK_RULE,
    Project,
    cache_key,
    target_folder,
    toolchain_of,
    user_wheel_cache,
)
from dev.paths import CONSTRAINTS, LOGS, ROOT
from dev.prerequisites import find_other_python
from dev.steps import StepFailed, Steps

OWN_PYTHON = None
"""The Python of the set-up."""

OTHER_PYTHONS = ("3.12", "3.13", "3.14")
"""The Pythons that the wheels are for, besides that of the set-up."""

ROW_READER_FOR = ("x86_64", "aarch64")
MANYLINUX = "manylinux_2_28"
"""The oldest Linux that a released row reader runs on: RHEL 8, Debian 10, Ubuntu 18.10."""

TOOLS = VENV / "release"
CROSS = VENV / "cross"
# Not in any manylinux policy: it comes with the JDK, where it is found when it is needed.
LIBJVM = "libjvm.so"


def build_all(
    into: Path,
    steps: Steps,
    pythons: Sequence[str | None] = (OWN_PYTHON,),
    row_reader_for: Sequence[str] = (),
) -> list[Path]:
    """Puts the wheels of the service and of the other distributions into a folder.

    Args:
        into: the folder.
        steps: runs the commands.
        pythons: the Pythons to have a wheel of Lucene for, such as "3.12".
        row_reader_for: the processors to compile the row reader for, such as "aarch64", which takes
            minutes; by default it is the set-up's.

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

    rows = [] if row_reader_for else [wheel_of(PARQUET_ROWS)]
    lucene = [wheel_of(PYLUCENE, python) for python in pythons]
    rule = wheel_of(SPARK_RULE)
    with steps.step("manylinux tags"):
        environment.install_beside(CONSTRAINTS / "release.txt", TOOLS, log="release-tools")
        tagged = [tag_for_manylinux(each, into, environment, steps) for each in (*rows, *lucene)]
    for processor in row_reader_for:
        with steps.step(f"row reader for {processor}"):
            tagged.append(build_row_reader(processor, into, environment, steps))
    pure = Path(shutil.copy2(rule, into))
    own = {"hudi_index_service": ROOT}
    own |= {each.distribution.replace("-", "_"): each.folder for each in PLUGINS}
    for name, folder in own.items():
        with steps.step(f"wheel {name}"):
            environment.build_wheel(folder, into, log=name)
    return [*tagged, pure, *(next(into.glob(f"{name}-*.whl")) for name in own)]


def build_row_reader(processor: str, into: Path, environment: Environment, steps: Steps) -> Path:
    """Compiles the row reader by zig, which links against any C library, and returns its wheel.

    Args:
        processor: "x86_64" or "aarch64".
        into: the folder of the wheel.
        environment: its Python runs the tools.
        steps: runs the commands.

    Raises:
        StepFailed: it failed; or Rust has no library for the processor (`rustup target add`).
    """
    environment.install_beside(CONSTRAINTS / "cross.txt", CROSS, log="cross-tools")
    for earlier in into.glob(f"hudi_index_parquet-*_{processor}.whl"):
        earlier.unlink()
    target = f"{processor}-unknown-linux-gnu"
    command: list[str | Path] = [CROSS / "bin" / "maturin", "build", "--release", "--zig"]
    command += ["--target", target, "--compatibility", MANYLINUX, "--out", into]
    command += ["--interpreter", environment.python]
    command += ["--manifest-path", PARQUET_ROWS.folder / "Cargo.toml"]
    env = {
        **os.environ,
        "PATH": f"{environment.python.parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "PYTHONPATH": str(CROSS),
        "CARGO_TARGET_DIR": str(target_folder()),
    }
    steps.run(f"row-reader-{processor}", command, env=env)
    (wheel,) = into.glob(f"hudi_index_parquet-*_{processor}.whl")
    return wheel


def is_to_be_had(python: str) -> bool:
    """Whether another Python, such as "3.12", is on this machine, or is fetched now by uv."""
    if find_other_python(python) != python:
        return True
    fetch: list[str | Path] = [VENV / "bin" / "uv", "python", "install", "--quiet", python]
    return subprocess.run(fetch, capture_output=True).returncode == 0


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
            for project in (PARQUET_ROWS, PYLUCENE, SPARK_RULE, *PLUGINS)
        )
        for source in (ROOT, *others):
            environment.build_sdist(source, into, log=f"sdist-{source.name}")
    return sorted(into.glob("*hudi_index*.tar.gz"))


def main(into: Path) -> None:
    """Builds everything and prints the paths."""
    steps = Steps(LOGS)
    try:
        present = [each for each in OTHER_PYTHONS if is_to_be_had(each)]
        for absent in sorted({*OTHER_PYTHONS}.difference(present)):
            steps.say(f"no wheel of Lucene for Python {absent}, which is not to be had here")
        wheels = build_all(into, steps, (OWN_PYTHON, *present), ROW_READER_FOR)
        for built in (*wheels, *build_sdists(into, steps)):
            print(built)
    except StepFailed as failure:
        raise SystemExit(f"failed: {failure}") from None


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
