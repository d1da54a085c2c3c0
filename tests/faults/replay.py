"""Repeats on a copy of a table what Hudi's own writer and cleaner did to the original, one file at
a time."""

import filecmp
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.faults.invariants import INDEX


def replay(before: Path, after: Path, target: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """The steps from one state of a table to a later one, for a copy of the former: the path of
    each file, and a function that puts it there, in the order of modification times, or removes
    it."""
    old, new = _files(before), _files(after)
    written = sorted(
        (
            path
            for path in new
            if path not in old or not filecmp.cmp(before / path, after / path, shallow=False)
        ),
        # At equal times, the files that a commit names come before the commit.
        key=lambda path: ((after / path).stat().st_mtime_ns, ".hoodie" in path, path),
    )
    for path in written:
        yield path, lambda path=path: _put(after / path, target / path)
    for path in sorted(old - new):
        yield path, (target / path).unlink


def _files(table: Path) -> set[str]:
    """Hudi's files."""
    found = (str(path.relative_to(table)) for path in table.rglob("*") if path.is_file())
    return {path for path in found if not path.startswith(INDEX)}


def _put(source: Path, target: Path) -> None:
    """Atomically, like a rename in HDFS or a put to an object store."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.part")
    shutil.copy2(source, part)
    part.rename(target)
