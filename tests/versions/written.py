"""The tables written by the Hudi releases, kept in the user's cache.

The first test that needs a release's tables writes them if they are missing. The key of a run is a
hash of its inputs: the scripts in `writing/`, the release's bundle, PySpark's version, and, for an
upgrade, the run that it continues.
"""

import hashlib
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from dev import jars
from dev.paths import ROOT
from tests.java_options import BRIEF, VARIABLE
from tests.kept_tables import kept

WRITING = Path(__file__).with_name("writing")

TABLE_VERSIONS = {"0.15.0": 6, "1.0.2": 8, "1.1.1": 9, "1.2.0": 9}
"""Release → version of the tables that it writes."""

# An upgrade in place: the release that wrote the table, and the one that upgraded it.
OLDEST, NEWEST = "0.15.0", "1.2.0"


def written_by(release: str) -> Path:
    """The folder of a release's tables: ``<table>/<state>/{table,rows,answers.json}``."""
    return _cached(release, None)


def upgraded() -> Path:
    """The folder of the tables upgraded by the newest release."""
    return _cached(NEWEST, written_by(OLDEST))


def _cached(release: str, earlier: Path | None) -> Path:
    return kept(release, _key(release, earlier), lambda folder: _write(release, folder, earlier))


def _key(release: str, earlier: Path | None) -> str:
    digest = hashlib.sha256()
    for script in sorted(WRITING.glob("*.py")):
        digest.update(script.name.encode() + b"\0" + script.read_bytes())
    facts = [jars.hudi_bundle(release).sha256, version("pyspark"), earlier.name if earlier else ""]
    digest.update("\0".join(facts).encode())
    return digest.hexdigest()


def _write(release: str, folder: Path, earlier: Path | None) -> None:
    """Runs the scripts with the release's bundle.

    Raises:
        RuntimeError: they failed; contains the end of their output.
    """
    bundle = jars.fetch(jars.hudi_bundle(release))
    command = [sys.executable, "-m", "tests.versions.writing", bundle, folder]
    done = subprocess.run(
        [*command, earlier] if earlier else command,
        cwd=ROOT,
        env={**os.environ, VARIABLE: BRIEF, "PYSPARK_PYTHON": sys.executable, "TZ": "UTC"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"Hudi {release} could not write its tables:\n{done.stdout[-6000:]}")
