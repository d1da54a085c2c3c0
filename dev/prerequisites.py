"""What must be on the machine before a set-up can begin, and how to get what is missing.

Only files are read and compilers asked for their version, so the answer comes at once.
This module has to import under older Pythons too, so that they are refused by name.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

PYTHON = (3, 11)
JDK_MAJOR = 17
LATEST_JDK_MAJOR = 25
"""The last one on which Lucene runs; Spark 3.5 stops at 17."""

JAVAS = Path("/usr/lib/jvm")
"""Where Linux has its Javas."""


class Missing(Exception):
    """A prerequisite that is absent or of the wrong version: its name, why, and how to get it."""

    def __init__(self, name: str, why: str, how: str) -> None:
        super().__init__(f"{name}: {why}. Get it: {how}")


@dataclass(frozen=True)
class Jdk:
    """A JDK: its folder, as JAVA_HOME names it, and its full version."""

    home: Path
    version: str


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: `kind` is the name of its program, `major` its major version."""

    path: str
    kind: str
    major: str


@dataclass(frozen=True)
class Browser:
    """Chromium and the program that drives it, by their paths."""

    program: str
    driver: str


BROWSER_PACKAGES = "chromium chromium-driver"
"""Debian's."""


def find_other_python(version: str) -> str:
    """The interpreter of another version, such as "3.12", on PATH or among pyenv's; the version
    itself if there is none, which uv may fetch."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates = [shutil.which(f"python{version}"), *pyenv.glob(f"versions/{version}.*/bin/python")]
    for each in candidates:
        # pyenv's stand-ins on PATH end with an error unless they are switched on.
        if each and subprocess.run([each, "-c", ""], capture_output=True).returncode == 0:
            return str(each)
    return version


def check_python() -> None:
    """This is the Python to set up with, on a platform that is supported.

    Raises:
        Missing: another platform or version, or it lacks venv or its C headers.
    """
    version = "{}.{}.{}".format(*sys.version_info[:3])
    how = "apt install python3.11 python3.11-venv python3.11-dev"
    if sys.platform != "linux":
        raise Missing("Linux", f"this is {sys.platform}", "a container or virtual machine will do")
    if sys.version_info[:2] != PYTHON:
        raise Missing(
            "Python 3.11",
            f"{sys.executable} is {version} (name another one: make PYTHON=python3.11 ...)",
            how,
        )
    if find_spec("ensurepip") is None:
        raise Missing("Python's venv module", f"{sys.executable} has no ensurepip", how)
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        raise Missing("Python's C headers", f"{sys.executable} has no Python.h", how)


def find_jdk() -> Jdk:
    """The JDK of JAVA_HOME, else the one whose javac is on PATH.

    Raises:
        Missing: there is none, it is a runtime without javac, or not version 17.
    """
    how = "apt install openjdk-17-jdk-headless"
    name = f"JDK {JDK_MAJOR}"
    if named := os.environ.get("JAVA_HOME"):
        home, origin = Path(named), f"JAVA_HOME={named}"
    elif found := _java_home_on_path():
        home, origin = found, str(found)
    else:
        raise Missing(name, "JAVA_HOME is not set and javac is not on PATH", how)
    if not (home / "bin" / "javac").is_file():
        raise Missing(name, f"{origin} has no bin/javac", how)
    version = _jdk_version(home)
    if version.split(".")[0] != str(JDK_MAJOR):
        raise Missing(
            name,
            f"{origin} is version {version}; Spark 3.5 stops at 17 and the Lucene module "
            "is generated from 17's own classes",
            how,
        )
    return Jdk(home, version)


def find_other_java(major: int) -> Path:
    """The folder of another version's Java, such as 25, where Linux has its Javas.

    Raises:
        Missing: it is not there.
    """
    for each in sorted(JAVAS.glob("*/release")):
        if _jdk_version(each.parent).split(".")[0] == str(major):
            return each.parent
    how = f"apt install openjdk-{major}-jdk-headless, or Temurin's temurin-{major}-jdk"
    raise Missing(f"JDK {major}", f"no folder of {JAVAS} is one", how)


def _java_home_on_path() -> Path | None:
    javac = shutil.which("javac")
    return Path(javac).resolve().parent.parent if javac else None


def _jdk_version(home: Path) -> str:
    release = home / "release"
    if release.is_file():
        found = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text(), re.MULTILINE)
        if found:
            return found.group(1)
    answer = subprocess.run(
        [home / "bin" / "javac", "-version"], capture_output=True, text=True, check=False
    )
    return (answer.stdout or answer.stderr).strip().removeprefix("javac ") or "unknown"


def find_browser() -> Browser:
    """Chromium and its driver, for the tests of the pages.

    Raises:
        Missing: one of them is not on PATH.
    """
    paths = []
    for names in (("chromium", "chromium-browser", "google-chrome"), ("chromedriver",)):
        path = next(filter(None, map(shutil.which, names)), None)
        if path is None:
            how = f"apt install {BROWSER_PACKAGES}"
            raise Missing("Chromium", f"{names[0]} is not on PATH", how)
        paths.append(path)
    return Browser(*paths)


def find_compiler() -> Compiler:
    """The C++ compiler: CXX if set, else the first of g++, clang++, c++ on PATH.

    Raises:
        Missing: there is none, or it does not run.
    """
    how = "apt install g++"
    named = os.environ.get("CXX", "").split()
    names = named[:1] or ["g++", "clang++", "c++"]
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        raise Missing("C++ compiler", f"none of {', '.join(names)} is on PATH", how)
    answer = subprocess.run([path, "-dumpversion"], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise Missing("C++ compiler", f"{path} -dumpversion failed", how)
    return Compiler(path, Path(path).name, answer.stdout.strip().split(".")[0])


def check_cargo(manifest: Path) -> None:
    """Cargo runs and is new enough for the crate, whose manifest says `rust-version`.

    Raises:
        Missing: cargo is absent, does not run, or is too old.
    """
    wanted = re.search(r'^rust-version\s*=\s*"([\d.]+)"', manifest.read_text(), re.MULTILINE)
    name = f"cargo (Rust {wanted.group(1)} or later)" if wanted else "cargo (Rust)"
    how = "apt install rustup && rustup default stable"
    path = shutil.which("cargo")
    if path is None:
        raise Missing(name, "cargo is not on PATH", how)
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"\d+(\.\d+)+", answer.stdout)
    if answer.returncode != 0 or not found:
        raise Missing(name, f"{path} does not run ({answer.stderr.strip()[:120]})", how)
    if wanted and _numbers(found.group()) < _numbers(wanted.group(1)):
        raise Missing(name, f"{path} is {found.group()}", how)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]
