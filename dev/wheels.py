"""Builds the four distributions: `python -m dev.wheels FOLDER`.

The native wheels come from the user's cache where a set-up has put them.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from dev.bootstrap import VENV, survey
from dev.environment import Environment, wanted_installer
from dev.native import user_wheel_cache
from dev.paths import LOGS, ROOT
from dev.steps import StepFailed, Steps


def build_all(into: Path, steps: Steps) -> list[Path]:
    """Puts the wheels of the service and of the native projects into a folder.

    Raises:
        StepFailed: a build failed.
    """
    cache = user_wheel_cache()
    machine = survey(cache)
    environment = Environment(VENV, steps, wanted_installer())
    into.mkdir(parents=True, exist_ok=True)
    for project in machine.absent():
        with steps.step(f"native wheel {project.distribution}"):
            wheel = cache.build(project, environment, machine.jdk, machine.compiler)
            machine.wheels[project] = wheel
    built = [Path(shutil.copy2(wheel, into)) for wheel in machine.wheels.values()]
    with steps.step("wheel hudi-index-service"):
        environment.build_wheel(ROOT, into, log="hudi-index-service")
    return [*built, *into.glob("hudi_index_service-*.whl")]


if __name__ == "__main__":
    try:
        for wheel in build_all(Path(sys.argv[1]).resolve(), Steps(LOGS)):
            print(wheel)
    except StepFailed as failure:
        raise SystemExit(f"failed: {failure}") from None
