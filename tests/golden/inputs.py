"""What a golden table is written from: its recipe, the modules that the recipe imports, PySpark
and Hudi. ``checked.json`` has their digest for each table, as of the last time that rewriting it
gave the same table; to rewrite all takes Spark many minutes.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

from dev import jars
from dev.paths import ROOT
from tests.golden import recipe

CHECKED = Path(__file__).with_name("checked.json")

_IMPORT = re.compile(
    r"^\s*(?:from|import) (tests[\w.]*)(?: import ([^\n(]*|\([^)]*\)))?", re.MULTILINE
)


def digests() -> dict[str, str]:
    """Table → the digest of its present inputs."""
    return {name: _digest(each.module) for name, each in recipe.recipes().items()}


def checked() -> Mapping[str, str]:
    """Table → the digest of the inputs with which it was checked."""
    found: Mapping[str, str] = json.loads(CHECKED.read_text("utf-8"))
    return found


def record(names: list[str]) -> None:
    """Records that these tables are what their inputs give."""
    present, recipes = digests(), recipe.recipes()
    kept = {**(checked() if CHECKED.exists() else {}), **{name: present[name] for name in names}}
    known = {name: kept[name] for name in sorted(kept) if name in recipes}
    CHECKED.write_text(json.dumps(known, indent=2) + "\n", "utf-8")


@cache
def _digest(module: str) -> str:
    files = {ROOT / "tests" / "golden" / "recipe.py"}
    left = [_file(module)]
    while left:
        file = left.pop()
        if file is None or file in files:
            continue
        files.add(file)
        for package, names in _IMPORT.findall(file.read_text("utf-8")):
            left += [_file(package)]
            left += [_file(f"{package}.{name}") for name in re.findall(r"\w+", names)]
    digest = hashlib.sha256(f"{version('pyspark')} {jars.hudi_bundle().sha256}".encode())
    for file in sorted(files):
        digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def _file(module: str) -> Path | None:
    file = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    return file if file.is_file() else None
