"""Fetches Lucene's jars by their Maven coordinates and checks them against pinned SHA-256 sums."""

import hashlib
import zipfile
from collections.abc import Sequence
from pathlib import Path

from jgo.maven import MavenContext


class JarError(RuntimeError):
    """A jar does not have the pinned checksum."""


def fetch(pins: Path, cache: Path) -> list[Path]:
    """Return the jars that ``pins`` lists: from the cache folder, else from the Maven repository.

    Args:
        pins: text file of lines ``<sha256>  <group>:<artifact>:<version>``; ``#`` starts a comment.
        cache: folder that keeps the jars for later builds.

    Raises:
        JarError: a jar has another SHA-256, even after it was fetched again.
    """
    maven = MavenContext(repo_cache=cache / "maven")
    jars = []
    for line in pins.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        sha256, coordinates = line.split()
        group, artifact, version = coordinates.split(":")
        component = maven.project(group, artifact).at_version(version)
        jar = Path(component.artifact().resolve())
        if _sha256(jar) != sha256:  # an interrupted download, for example
            jar.unlink()
            jar = Path(component.artifact().resolve())
        found = _sha256(jar)
        if found != sha256:
            jar.unlink()
            raise JarError(f"{coordinates} has SHA-256 {found}, expected {sha256} ({pins.name})")
        jars.append(jar)
    return jars


def unpack_license(jars: Sequence[Path], folder: Path) -> None:
    """Write LICENSE.txt and NOTICE.txt from Lucene's jars to ``folder``."""
    with zipfile.ZipFile(jars[0]) as archive:
        for name in ("LICENSE.txt", "NOTICE.txt"):
            (folder / name).write_bytes(archive.read(f"META-INF/{name}"))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
