"""Makes a fresh checkout ready: `python -m dev.bootstrap demo` or `... test`.

Prerequisites first; then, side by side, the dependencies (and Hudi's jar) and the three native
wheels, that of Spark as soon as PySpark is there; then the checkout itself, editable, for tests
with the index type hbase and Airflow's provider. A run that finds everything as the last one left
it ends at once.
INSTALLER=pip does without uv; HUDI_INDEX_CACHE moves the cache.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dev import jars, prerequisites
from dev.environment import Environment, wanted_installer
from dev.native import (
    PARQUET_ROWS,
    PLUGINS,
    PYLUCENE,
    SPARK_RULE,
    Project,
    WheelCache,
    cache_key,
    toolchain_of,
    user_wheel_cache,
)
from dev.paths import CONSTRAINTS, LOGS, ROOT
from dev.prerequisites import Compiler, Jdk, Missing
from dev.steps import StepFailed, Steps

VENV = ROOT / ".venv"
STAMP = VENV / "set-up.json"
# Profiles in order: each holds all that the ones before it hold.
PROFILES = ("demo", "test")
REQUIREMENTS = {"demo": CONSTRAINTS / "demo.txt", "test": CONSTRAINTS / "dev.txt"}
# The demo has neither HBase nor Airflow.
EDITABLE = {"demo": (ROOT,), "test": (ROOT, *(each.folder for each in PLUGINS))}


@dataclass(frozen=True)
class Machine:
    """The prerequisites as found, and the native wheels that they lead to."""

    jdk: Jdk
    compiler: Compiler
    keys: dict[Project, str]
    wheels: dict[Project, Path]

    def absent(self) -> list[Project]:
        """The native projects whose wheels have yet to be built."""
        return [project for project in self.keys if project not in self.wheels]


def survey(cache: WheelCache) -> Machine:
    """Looks for every prerequisite; those of a native build only if its wheel is not cached.

    Raises:
        SystemExit: some are missing; the message has a line for each.
    """
    missing: list[str] = []

    @contextmanager
    def noted() -> Iterator[None]:
        try:
            yield
        except Missing as absent:
            missing.append(str(absent))

    jdk: Jdk | None = None
    compiler: Compiler | None = None
    with noted():
        prerequisites.check_python()
    if missing:
        # What follows needs this Python.
        raise SystemExit("\n".join(f"missing: {line}" for line in missing))
    with noted():
        jdk = prerequisites.find_jdk()
    with noted():
        compiler = prerequisites.find_compiler()
    keys = {project: cache_key(project, ()) for project in (PARQUET_ROWS, SPARK_RULE)}
    if jdk and compiler:
        keys[PYLUCENE] = cache_key(PYLUCENE, toolchain_of(PYLUCENE, jdk, compiler))
    found = {project: cache.find(project, key) for project, key in keys.items()}
    wheels = {project: wheel for project, wheel in found.items() if wheel}
    if PARQUET_ROWS not in wheels:
        with noted():
            prerequisites.check_cargo(PARQUET_ROWS.folder / "Cargo.toml")
    if missing or jdk is None or compiler is None:
        raise SystemExit("\n".join(f"missing: {line}" for line in missing))
    return Machine(jdk, compiler, keys, wheels)


def fingerprint(machine: Machine) -> str:
    """Hash of everything that a finished set-up rests on, the profile aside."""
    digest = hashlib.sha256()
    files = [folder / "pyproject.toml" for folder in EDITABLE["test"]]
    files += [*CONSTRAINTS.glob("*.txt"), *(ROOT / "dev").glob("*.py")]
    for path in sorted(files):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    facts = [str(ROOT), sys.version, os.path.realpath(sys.executable), str(machine.jdk)]
    facts += [wanted_installer(), str(jars.hudi_bundle().path()), *sorted(machine.keys.values())]
    digest.update("\0".join(facts).encode())
    return digest.hexdigest()


def is_current(profile: str, wanted: str) -> bool:
    """Whether an earlier run has set up this much, from these very inputs."""
    if not STAMP.is_file() or not (VENV / "bin" / "python").exists():
        return False
    if not jars.hudi_bundle().path().is_file():
        return False
    stamp = json.loads(STAMP.read_text())
    enough = PROFILES.index(stamp["profile"]) >= PROFILES.index(profile)
    return enough and stamp["fingerprint"] == wanted


def set_up(profile: str, machine: Machine, cache: WheelCache, steps: Steps) -> None:
    """Brings the virtual environment to what `profile` needs.

    Raises:
        StepFailed: a command failed; the other ones have been stopped.
    """
    inputs = fingerprint(machine)
    STAMP.unlink(missing_ok=True)
    environment = Environment(VENV, steps, wanted_installer())
    environment.prepare()

    def install_dependencies() -> None:
        with steps.step(f"dependencies of the {profile}"):
            environment.install("-r", REQUIREMENTS[profile], log="dependencies")
        if not jars.fetched(jars.hudi_bundle()):
            with steps.step(f"{jars.hudi_bundle().artifact} {jars.hudi_bundle().version} jar"):
                environment.run("dev.jars", log="hudi-jar")

    def build(project: Project) -> None:
        with steps.step(f"native wheel {project.distribution}"):
            wheel = cache.build(project, environment, machine.jdk, machine.compiler)
            machine.wheels[project] = wheel

    absent = machine.absent()

    def install_then_build_spark_rule() -> None:
        install_dependencies()
        if SPARK_RULE in absent:
            build(SPARK_RULE)

    with ThreadPoolExecutor() as pool:
        work: list[Future[None]] = [pool.submit(install_then_build_spark_rule)]
        work += [pool.submit(build, project) for project in absent if project != SPARK_RULE]
        finish_or_stop(work, steps)

    with steps.step("native wheels and the checkout itself"):
        environment.install(*machine.wheels.values(), log="native-wheels", afresh=True)
        for folder in EDITABLE[profile]:
            environment.install("--editable", folder, log=f"checkout-{folder.name}")
        environment.check()
    with steps.step("archive of Lucene's classes"):
        prepare(environment, machine.jdk, steps)
    environment.write_activation(machine.jdk, jars.hudi_bundle().path())
    draft = STAMP.with_suffix(".draft")
    draft.write_text(json.dumps({"profile": profile, "fingerprint": inputs}))
    draft.replace(STAMP)


def prepare(environment: Environment, jdk: Jdk, steps: Steps) -> None:
    """Has processes of the environment start faster. They also work without."""
    command: list[str | Path] = [environment.python, "-m", "hudi_index_service", "prepare"]
    try:
        steps.run("prepare", command, env={**os.environ, "JAVA_HOME": str(jdk.home)}, cwd=ROOT)
    except StepFailed as failure:
        steps.say(f"going on without it: processes start more slowly\n{failure}")


def install_browser(steps: Steps) -> None:
    """Has Debian's packages of the browser installed, for the tests of the pages, if it is absent
    and this user may. Whoever runs these tests without it is told how to get it."""
    try:
        prerequisites.find_browser()
        return
    except Missing as absent:
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            steps.say(f"going on without, but for the tests of the pages: {absent}")
            return
    packages = prerequisites.BROWSER_PACKAGES.split()
    options = ["-q", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"]
    quietly = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        with steps.step("browser for the tests of the pages"):
            steps.run("browser-list", ["apt-get", "-q", "update"], env=quietly)
            steps.run("browser", ["apt-get", "install", *options, *packages], env=quietly)
    except StepFailed as failure:
        steps.say(f"going on without a browser: the tests of the pages fail\n{failure}")


def finish_or_stop(work: list[Future[None]], steps: Steps) -> None:
    """Waits for all of `work`; the first failure, or Ctrl-C, stops the rest."""
    try:
        wait(work, return_when=FIRST_EXCEPTION)
        for done in work:
            if done.done():
                done.result()
    finally:
        if not all(done.done() for done in work):
            steps.stop()


@contextmanager
def checkout_lock() -> Iterator[int]:
    """One set-up at a time in a checkout. The kernel lifts the lock when its last holder ends."""
    descriptor = os.open(ROOT, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another set-up of this checkout is at work: waiting for it", flush=True)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def main() -> None:
    """The command line: `python -m dev.bootstrap PROFILE`."""
    parser = argparse.ArgumentParser(prog="python -m dev.bootstrap", description=__doc__)
    parser.add_argument("profile", choices=PROFILES)
    profile = parser.parse_args().profile
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    cache = user_wheel_cache()
    machine = survey(cache)
    with checkout_lock() as lock:
        steps = Steps(LOGS, lock)
        if profile == "test":
            install_browser(steps)
        if is_current(profile, fingerprint(machine)):
            steps.say(f"set up for the {profile}: nothing has changed")
            return
        try:
            set_up(profile, machine, cache, steps)
        except StepFailed as failure:
            raise SystemExit(f"failed: {failure}") from None
        except KeyboardInterrupt:
            steps.stop()
            raise SystemExit("interrupted; the next run goes on from here") from None
        steps.say(f"set up for the {profile}")


if __name__ == "__main__":
    main()
