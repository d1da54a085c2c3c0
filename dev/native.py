"""The other distributions. The native ones are built once for each set of inputs, then taken from
the user's cache.

A cache entry is a folder named after the hash of everything the wheel depends on. It appears
whole, by one rename, and its wheel is checked against the recorded hash each time it is used.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dev import spark_home
from dev.checksums import sha256_of
from dev.environment import Environment
from dev.paths import ROOT, cache_folder
from dev.prerequisites import Compiler, Jdk, find_other_python

CHECKSUM = "SHA256"
ABANDONED_AFTER = 24 * 3600
# Tests and checks of a native project and what tools leave in its folder do not reach its wheel.
NO_INPUT = {"target", "build", "dist", "tests", "__pycache__", "Cargo.lock", "deny.toml"}
NO_INPUT_SUFFIXES = (".so", ".dylib", ".pyc", ".class", ".egg-info", ".whl")


@dataclass(frozen=True)
class Project:
    """A folder that PEP 517 tools build a wheel from.

    Attributes:
        distribution: the wheel's name.
        folder: the project's folder.
        gives_way: whether its build leaves the processors to others that take longer.
    """

    distribution: str
    folder: Path
    gives_way: bool = True

    def inputs(self) -> list[Path]:
        """The files its wheel is made of, in a fixed order."""
        return sorted(_files(self.folder))

    def copied_to(self, folder: Path) -> Project:
        """The same project as a copy of its inputs in `folder`, with new times: cargo, whose target
        folder all checkouts share, takes older files for those that it compiled last."""
        for path in self.inputs():
            target = folder / path.relative_to(self.folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        return replace(self, folder=folder)


PYLUCENE = Project("hudi-index-pylucene", ROOT / "native" / "pylucene")
PARQUET_ROWS = Project("hudi-index-parquet", ROOT / "native" / "parquet_rows", gives_way=False)
SPARK_RULE = Project("hudi-index-spark", ROOT / "native" / "spark_rule")
HBASE = Project("hudi-index-hbase", ROOT / "plugins" / "hbase")
AIRFLOW = Project("airflow-provider-hudi-index", ROOT / "plugins" / "airflow")
PLUGINS = (HBASE, AIRFLOW)
"""Python alone: built, or installed editable, whenever they are needed."""


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name in NO_INPUT or path.name.startswith("."):
            continue
        if path.name.endswith(NO_INPUT_SUFFIXES):
            continue
        if path.is_dir():
            yield from _files(path)
        else:
            yield path


def cache_key(project: Project, toolchain: tuple[str, ...], python: str | None = None) -> str:
    """Hash of all that decides about the wheel.

    Its sources, which pin its build tools and libraries too, the Python it is for (by default the
    running one), the platform, and `toolchain` (see `toolchain_of`).
    """
    digest = hashlib.sha256()

    def add(name: str, content: bytes) -> None:
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)

    for path in project.inputs():
        add(path.relative_to(project.folder).as_posix(), path.read_bytes())
    own = (f"{sys.version_info[:2]}", str(sysconfig.get_config_var("SOABI")))
    machine = (sysconfig.get_platform(), *platform.libc_ver())
    for fact in (*((python,) if python else own), *machine, *toolchain):
        add("fact", fact.encode())
    return digest.hexdigest()[:32]


def toolchain_of(project: Project, jdk: Jdk, compiler: Compiler) -> tuple[str, ...]:
    """What of the machine's compilers decides about a wheel.

    The Lucene module is C++ generated from the JDK's classes. The row reader's wheel is the
    same whatever Rust builds it, and links nothing of the machine but libc. Spark's jar is made for
    one release of Java by any JDK.
    """
    if project == PYLUCENE:
        return (f"jdk {jdk.version.split('.')[0]}", f"{compiler.kind} {compiler.major}")
    return ()


def spark_jars(environment: Environment) -> list[Path]:
    """The folders of Spark's jars in an environment: for Scala 2.12, and for 2.13."""
    homes = (environment.packages / "pyspark", environment.folder / spark_home.NAME)
    return [home / "jars" for home in homes]


class WheelCache:
    """Wheels by key, below the user's cache folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, project: Project, key: str) -> Path | None:
        """The cached wheel, or None; an entry that is not whole is thrown away."""
        entry = self._entry(project, key)
        if not entry.is_dir():
            return None
        wheel = _whole(entry)
        if wheel is None:
            with self._scratch() as scratch:
                entry.rename(scratch / "damaged")
        return wheel

    def build(
        self,
        project: Project,
        environment: Environment,
        jdk: Jdk,
        compiler: Compiler,
        python: str | None = None,
    ) -> Path:
        """Builds the wheel and publishes it.

        It is built from a copy that holds its inputs alone, and published under the key of that
        copy: nothing else can slip in, and an edit during the build spoils nothing.

        Args:
            project: what to build.
            environment: runs the build.
            jdk: with which it is built.
            compiler: by which it is built.
            python: the version that the wheel is for, such as "3.12"; by default that of the
                environment.

        Raises:
            StepFailed: the build failed.
        """
        with self._scratch() as scratch, self._one_at_a_time(project):
            source = project.copied_to(scratch / project.folder.name)
            toolchain = toolchain_of(project, jdk, compiler)
            if project == SPARK_RULE:
                environment.run("dev.spark_home", log=spark_home.NAME)
            entry = self._entry(project, cache_key(source, toolchain, python))
            built = scratch / "entry"
            built.mkdir()
            env = {
                "JAVA_HOME": str(jdk.home),
                "PATH": f"{jdk.home / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}",
                # Lucene's jars are kept beside the wheels.
                "HUDI_INDEX_CACHE": str(self._folder),
                # Crates compiled once serve again after a change of our own sources.
                "CARGO_TARGET_DIR": str(target_folder(self._folder)),
                "HUDI_INDEX_SPARK_JARS": os.pathsep.join(map(str, spark_jars(environment))),
            }
            environment.build_wheel(
                source.folder,
                built,
                log=project.distribution,
                env=env,
                # Each pins its own build tools.
                constrained=False,
                gives_way=project.gives_way,
                python=find_other_python(python) if python else None,
            )
            wheels = list(built.glob("*.whl"))
            if len(wheels) != 1:
                raise RuntimeError(f"{project.distribution}: built {len(wheels)} wheels, not one")
            for other in set(built.iterdir()) - set(wheels):
                other.unlink()
            (built / CHECKSUM).write_text(f"{sha256_of(wheels[0])}  {wheels[0].name}\n")
            entry.parent.mkdir(parents=True, exist_ok=True)
            try:
                built.rename(entry)
            except OSError:
                # Another set-up was quicker; its entry serves as well as ours.
                if not entry.is_dir():
                    raise
            return entry / wheels[0].name

    def _entry(self, project: Project, key: str) -> Path:
        return self._folder / "wheels" / f"{project.distribution}-{key}"

    @contextmanager
    def _one_at_a_time(self, project: Project) -> Iterator[None]:
        """Keeps two checkouts from building a project at once, in cargo's one target folder: each
        could get what the other compiled."""
        with (self._folder / f"{project.distribution}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        """A folder beside the entries, gone afterwards; so are those of killed runs in a day."""
        parent = self._folder / "scratch"
        parent.mkdir(parents=True, exist_ok=True)
        for left in parent.iterdir():
            if left.stat().st_mtime < time.time() - ABANDONED_AFTER:
                shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=parent) as name:
            yield Path(name)


def target_folder(cache: Path | None = None) -> Path:
    """Where cargo compiles crates, in the user's cache folder or another one."""
    return (cache or cache_folder()) / "cargo-target"


def user_wheel_cache() -> WheelCache:
    """The cache in the user's cache folder."""
    return WheelCache(cache_folder())


def _whole(entry: Path) -> Path | None:
    record = entry / CHECKSUM
    if not record.is_file():
        return None
    wanted, _, name = record.read_text().strip().partition("  ")
    wheel = entry / name
    return wheel if wheel.is_file() and sha256_of(wheel) == wanted else None
