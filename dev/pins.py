"""Resolves dev.txt, demo.txt, build.txt and airflow-2.txt in constraints/ from the files
pyproject.toml: `make pins`.

Versions that still fit stay; to move one, edit or delete its line first. The resolution names no
registry. Needs uv.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from dev.native import AIRFLOW, PARQUET_ROWS, PLUGINS, PYLUCENE, SPARK_RULE
from dev.paths import CONSTRAINTS, ROOT

# Built here, not fetched.
OURS = (
    "hudi-index-service",
    *(each.distribution for each in (*PLUGINS, PARQUET_ROWS, PYLUCENE, SPARK_RULE)),
)

# Build tools that pyproject.toml does not name: PySpark comes as source, built by setuptools.
SOURCE_BUILDS = ("setuptools<81", "wheel")


def resolve(into: Path, *arguments: str | Path, given: Sequence[str] = ()) -> None:
    """Writes exact versions to a file, whose present ones are preferred.

    Args:
        into: the file of pins.
        arguments: what to resolve, as `uv pip compile` takes it.
        given: lines for the argument that says `-`.
    """
    command: list[str | Path] = [Path(sys.prefix, "bin", "uv"), "pip", "compile", "--quiet"]
    command += ["--universal", "--python-version", "3.11", "--no-header", "--no-annotate"]
    command += ["--output-file", into, *arguments]
    subprocess.run(command, input="\n".join(given), text=True, cwd=ROOT, check=True)


def main() -> None:
    dev, demo, build = (CONSTRAINTS / name for name in ("dev.txt", "demo.txt", "build.txt"))
    project = ("pyproject.toml", "--excludes", "-")
    plugins = [each.folder / "pyproject.toml" for each in PLUGINS]
    resolve(dev, *plugins, *project, "--extra", "dev", given=OURS)
    resolve(demo, *project, "--extra", "demo", "--constraints", dev, given=OURS)
    older = ("apache-airflow<3", "apache-airflow-providers-openlineage")
    resolve(CONSTRAINTS / "airflow-2.txt", AIRFLOW.folder / "pyproject.toml", "-", given=older)
    own = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    resolve(build, "-", given=[*own, *SOURCE_BUILDS])


if __name__ == "__main__":
    main()
