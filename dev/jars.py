"""Hudi's bundle jars: fetched once into the user's cache, known by the hashes pinned for them.

`python -m dev.jars` prints the path of the one that is used, `python -m dev.jars 0.15.0` that of
another release. Fetching needs the package jgo, which reads Maven repositories without Maven;
finding a jar that was fetched before needs nothing.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dev.checksums import sha256_of
from dev.paths import CONSTRAINTS, cache_folder

PINS = CONSTRAINTS / "jars.txt"


class JarRefused(Exception):
    """A fetched jar is not the one that was pinned."""


@dataclass(frozen=True)
class PinnedJar:
    """A jar by its Maven coordinates, and the SHA-256 (hexadecimal) that it must have."""

    group: str
    artifact: str
    version: str
    sha256: str

    def path(self) -> Path:
        """Where the jar lies in the cache once it has been fetched."""
        return cache_folder() / "jars" / f"{self.artifact}-{self.version}.jar"


def hudi_bundle(release: str | None = None) -> PinnedJar:
    """The bundle of a Hudi release for Spark; without `release`, the first that
    constraints/jars.txt pins, which is the one used. The others write tables for the tests.

    Raises:
        LookupError: none is pinned, or not that release.
    """
    for line in PINS.read_text().splitlines():
        coordinates, _, sha256 = line.partition(" ")
        if coordinates.startswith("org.apache.hudi:hudi-spark"):
            group, artifact, version = coordinates.split(":")
            if release in (None, version):
                return PinnedJar(group, artifact, version, sha256.strip())
    raise LookupError(f"{PINS} pins no bundle of Hudi {release or ''}")


def fetched(jar: PinnedJar) -> bool:
    """Whether the jar lies in the cache, byte for byte the pinned one."""
    return jar.path().is_file() and sha256_of(jar.path()) == jar.sha256


def fetch(jar: PinnedJar) -> Path:
    """The jar's path; downloads it if the cache does not hold it.

    Raises:
        JarRefused: what was downloaded has another hash.
    """
    if fetched(jar):
        return jar.path()
    from jgo.maven import MavenContext

    folder = jar.path().parent
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        maven = MavenContext(repo_cache=Path(scratch))
        component = maven.project(jar.group, jar.artifact).at_version(jar.version)
        download = Path(component.artifact().resolve())
        found = sha256_of(download)
        if found != jar.sha256:
            raise JarRefused(
                f"{jar.artifact}-{jar.version}.jar has sha256 {found}, pinned is {jar.sha256}"
            )
        download.replace(jar.path())
    return jar.path()


if __name__ == "__main__":
    print(fetch(hudi_bundle(*sys.argv[1:2])))
