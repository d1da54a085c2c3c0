"""Finds Hudi's bundle for the demo, or downloads it."""

import hashlib
import tempfile
from pathlib import Path

from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.hudi.bundle import (
    ARTIFACT,
    BUNDLE_VARIABLE,
    GROUP,
    VERSION,
    bundle_of_spark,
    downloaded_bundle,
    named_bundle,
)

SHA256 = "cc79fba00822f3a6c3a860df99375c2e3d4a034d037dbf4213a4966a706a7676"
"""The hash of the release's jar."""

_BY_HAND = (
    f"download {GROUP}:{ARTIFACT}:{VERSION} from a Maven repository and set {BUNDLE_VARIABLE} to "
    "its path."
)


def hudi_bundle() -> Path:
    """The jar that ``HUDI_INDEX_HUDI_JAR`` names; else one among Spark's own jars; else the pinned
    release, which is downloaded once into the folder for copies.

    Raises:
        ConfigInvalid: the variable names no file; the package jgo is missing; the jar cannot be
            downloaded, or is not the pinned one.
    """
    if found := named_bundle() or bundle_of_spark():
        return found
    jar = downloaded_bundle()
    if not _is_pinned(jar):
        jar.parent.mkdir(parents=True, exist_ok=True)
        _download(jar)
    return jar


def _download(jar: Path) -> None:
    """Downloads the pinned jar to this path."""
    try:
        from jgo.maven import MavenContext
    except ImportError as error:
        raise ConfigInvalid(
            "Hudi's bundle for Spark is not on this machine, and the package jgo, which downloads "
            "it, is not installed.",
            remedy=f"pip install 'hudi-index-service[demo]'; or {_BY_HAND}",
        ) from error
    with tempfile.TemporaryDirectory(dir=jar.parent) as scratch:
        try:
            maven = MavenContext(repo_cache=Path(scratch))
            component = maven.project(GROUP, ARTIFACT).at_version(VERSION)
            download = Path(component.artifact().resolve())
        except OSError as error:  # the errors of its HTTP client derive from it
            raise ConfigInvalid(
                f"Hudi's bundle for Spark cannot be downloaded: {error}.",
                remedy=f"Try again where the network allows it; or {_BY_HAND}",
            ) from error
        if not _is_pinned(download):
            raise ConfigInvalid(
                f"The downloaded {jar.name} does not have the SHA-256 {SHA256}.",
                remedy=f"Try again; or {_BY_HAND}",
            )
        download.replace(jar)


def _is_pinned(jar: Path) -> bool:
    if not jar.is_file():
        return False
    with jar.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == SHA256
