"""Writes native/parquet_rows/CRATES.txt: `python -m dev.crate_licenses`.

The wheel of the row reader contains the compiled crates that it depends on. Their licenses ask that
copyright and permission come with them. Where a crate offers the Apache License 2.0, which is the
project's own, that one is taken. To be run again when a crate changes.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dev.native import PARQUET_ROWS

LIST = PARQUET_ROWS.folder / "CRATES.txt"
TARGET = "x86_64-unknown-linux-gnu"
OWN_LICENSE = "Apache-2.0"
TEXTS = re.compile(r"(LICEN[CS]E|COPYING|NOTICE).*", re.IGNORECASE)
# C sources inside crates, whose license lies beside them.
BUNDLED = ("libdeflate", "zstd")
HEAD = f"""\
Crates and C libraries that the extension module contains, with their licenses. Written by
dev/crate_licenses.py. Those under {OWN_LICENSE}, alone or by choice, have the text of LICENSE.
Rust's standard library is contained, too: Copyright The Rust Project Developers, {OWN_LICENSE}.
"""


def linked_crates() -> list[dict[str, Any]]:
    """The crates of the extension module as `cargo metadata` describes them, by name: not those
    that only its build or its macros use, nor our own.

    Raises:
        subprocess.CalledProcessError: cargo has said why on standard error.
    """
    command = ["cargo", "metadata", "--format-version", "1", "--filter-platform", TARGET]
    answer = subprocess.run(command, cwd=PARQUET_ROWS.folder, stdout=subprocess.PIPE, check=True)
    metadata = json.loads(answer.stdout)
    packages = {each["id"]: each for each in metadata["packages"]}
    nodes = {each["id"]: each for each in metadata["resolve"]["nodes"]}
    linked, pending = set(), [metadata["resolve"]["root"]]
    while pending:
        package = pending.pop()
        if package in linked or "proc-macro" in packages[package]["targets"][0]["kind"]:
            continue
        linked.add(package)
        for dependency in nodes[package]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                pending.append(dependency["pkg"])
    foreign = [packages[each] for each in linked if packages[each]["source"] is not None]
    return sorted(foreign, key=lambda each: str(each["name"]))


def texts(crate: dict[str, Any]) -> Iterator[str]:
    """What has to come with a crate: its notice, and its license unless it is the project's own."""
    folder = Path(crate["manifest_path"]).parent
    own = OWN_LICENSE in re.split(r" OR |/", crate["license"])
    files = [path for path in folder.iterdir() if TEXTS.fullmatch(path.name)]
    for path in sorted(files):
        if not own or path.name.upper().startswith("NOTICE"):
            yield path.read_text().strip()
    for name in BUNDLED:
        # zstd's COPYING is another license to choose.
        found = [folder / name / each for each in ("LICENSE", "COPYING")]
        yield from [path.read_text().strip() for path in found if path.is_file()][:1]


def main() -> None:
    """Writes the file."""
    crates = linked_crates()
    lines = [HEAD]
    lines += [f"{each['name']} {each['version']}: {each['license']}" for each in crates]
    users: dict[str, list[str]] = {}
    for crate in crates:
        for text in texts(crate):
            users.setdefault(text, []).append(crate["name"])
    for text, names in users.items():
        lines += ["", "=" * 79, ", ".join(dict.fromkeys(names)), "=" * 79, "", text]
    # Trailing blanks are no part of a license.
    LIST.write_text("\n".join(line.rstrip() for line in "\n".join(lines).splitlines()) + "\n")


if __name__ == "__main__":
    main()
