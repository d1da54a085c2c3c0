"""Jars of Hudi, HBase, HDFS and Java's tools: fetched once into the user's cache, known by their
pinned hashes.

`python -m dev.jars` prints the path of Hudi's bundle that is used, `python -m dev.jars 0.15.0` that
of another release; `python -m dev.jars hbase` fetches HBase's and prints its class path, and
`python -m dev.jars hdfs` does the same for HDFS. Fetching needs the package jgo, which reads Maven
repositories without Maven; finding a jar that was fetched before needs nothing.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from dev.checksums import sha256_of
from dev.paths import CONSTRAINTS, cache_folder

PINS = CONSTRAINTS / "jars.txt"
HBASE_PINS = CONSTRAINTS / "hbase-jars.txt"
HDFS_PINS = CONSTRAINTS / "hdfs-jars.txt"
JAVA_TOOLS = CONSTRAINTS / "java-tools.txt"
AT_ONCE = 6
ATTEMPTS = 3


class JarRefused(Exception):
    """A fetched jar is not the one that was pinned."""


@dataclass(frozen=True)
class PinnedJar:
    """A jar by its Maven coordinates, and the SHA-256 (hexadecimal) that it must have."""

    group: str
    artifact: str
    version: str
    sha256: str
    classifier: str = ""

    def path(self) -> Path:
        """Where the jar lies in the cache once it has been fetched."""
        suffix = f"-{self.classifier}" if self.classifier else ""
        return cache_folder() / "jars" / f"{self.artifact}-{self.version}{suffix}.jar"


def hudi_bundle(release: str | None = None, scala: str = "2.12") -> PinnedJar:
    """The bundle of a Hudi release for Spark with this version of Scala; without `release`, the
    first that constraints/jars.txt pins, which is the one used. The others write tables for the
    tests.

    Raises:
        LookupError: none is pinned, or not that release.
    """
    for jar in pinned(PINS):
        if jar.artifact.endswith(f"-bundle_{scala}") and release in (None, jar.version):
            return jar
    raise LookupError(f"{PINS} pins no bundle of Hudi {release or ''} for Scala {scala}")


def bundle_path() -> str:
    """Path of the bundle used: as the environment names it, else fetched into the user's cache."""
    return os.environ.get("HUDI_INDEX_HUDI_JAR") or str(fetch(hudi_bundle()))


def hbase_jars() -> list[PinnedJar]:
    """The class path of HBase standalone and its Thrift server: of the jars that HBase depends on
    those of which it loads classes, which is less than half."""
    return pinned(HBASE_PINS)


def hdfs_jars() -> list[PinnedJar]:
    """What a small HDFS needs besides Hadoop's client, which comes with PySpark, of the same
    version."""
    return pinned(HDFS_PINS)


def pinned(pins: Path) -> list[PinnedJar]:
    """The jars of a file, each a line: group, artifact, version, a classifier if the jar has one,
    and the hash."""
    jars = []
    for line in pins.read_text().splitlines():
        coordinates, _, sha256 = line.partition(" ")
        group, artifact, version, *classifier = coordinates.split(":")
        jars.append(PinnedJar(group, artifact, version, sha256.strip(), *classifier))
    return jars


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
        download = Path(component.artifact(jar.classifier).resolve())
        found = sha256_of(download)
        if found != jar.sha256:
            raise JarRefused(
                f"{jar.artifact}-{jar.version}.jar has sha256 {found}, pinned is {jar.sha256}"
            )
        download.replace(jar.path())
    return jar.path()


def fetch_all(jars: Sequence[PinnedJar], say: Callable[[str], None]) -> list[Path]:
    """The jars' paths, in their order; downloads those that the cache does not hold.

    Args:
        jars: Several are downloaded at a time.
        say: Told how far downloading is, a line at a time; nothing if all are there.

    Raises:
        JarRefused: what was downloaded has another hash.
    """
    absent = [jar for jar in jars if not fetched(jar)]
    done = 0
    counting = threading.Lock()

    def fetch_one(jar: PinnedJar) -> None:
        nonlocal done
        size = _fetch_patiently(jar).stat().st_size
        with counting:
            done += 1
            say(f"{done} of {len(absent)}: {jar.path().name}, {size / 1e6:.1f} MB")

    with ThreadPoolExecutor(AT_ONCE) as pool:
        # Consumed, so that the first failure is raised.
        list(pool.map(fetch_one, absent))
    return [jar.path() for jar in jars]


def _fetch_patiently(jar: PinnedJar) -> Path:
    """Of so many requests one may fail for no reason that lasts."""
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(OSError):  # what the network fails with, too
            return fetch(jar)
    return fetch(jar)


def main(wanted: Sequence[str]) -> None:
    """Prints where the jars are that the command line asks for."""
    servers = {"hbase": hbase_jars, "hdfs": hdfs_jars}
    if wanted and wanted[0] in servers:
        paths = fetch_all(servers[wanted[0]](), say=lambda line: print(line, file=sys.stderr))
        print(os.pathsep.join(map(str, paths)))
    else:
        print(fetch(hudi_bundle(*wanted)))


if __name__ == "__main__":
    main(sys.argv[1:2])
