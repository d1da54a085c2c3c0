"""Golden tables, written by real Spark and Hudi and kept in the repository for tests without Spark.

A golden table is a folder below ``tests/golden/tables``: an archive with the table's files at each
step, and as Parquet the rows that Spark read at each step and its answers. ``make golden`` writes
them from the recipes in ``tests/golden/recipes``; the Spark tier of the tests rewrites them and
compares (``test_golden_tables.py``).
"""

import hashlib
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

TABLES = Path(__file__).parent / "tables"

_INDEX = Path(".hoodie/.index")
_REMEDY = "Run `make golden`, which needs Spark and Hudi, and commit what it writes."


@dataclass(frozen=True)
class GoldenTable:
    """A golden table, unpacked.

    Attributes:
        name: The name of its recipe.
        folder: Has a folder for each step, with the table's files; never modified.
    """

    name: str
    folder: Path

    @property
    def steps(self) -> list[str]:
        """The steps in which the table was written, in order."""
        return (self.folder / "steps").read_text("utf-8").splitlines()

    def put(self, path: Path, step: str | None = None) -> Path:
        """Makes the table at `path` what it was after a step, by default the last one.

        Hudi's files are added, changed and removed as when the table was written; the service's own
        folder, ``.hoodie/.index``, stays. So a test can build an index between two writes.

        Returns:
            `path`.
        """
        source = self.folder / (step or self.steps[-1])
        wanted = set(_files(source))
        for removed in set(_files(path)) - wanted if path.exists() else ():
            (path / removed).unlink()
        # The timeline comes last, and an instant's completion after its plan: a concurrent reader
        # sees no commit before its files.
        for file in sorted(wanted, key=lambda file: (file.parts[0] == ".hoodie", file)):
            target = path / file
            if not target.exists() or not _same(source / file, target):
                target.parent.mkdir(parents=True, exist_ok=True)
                incoming = target.with_name(f".{target.name}.arriving")
                shutil.copy2(source / file, incoming)
                incoming.replace(target)
        return path

    def rows(self, step: str | None = None) -> pa.Table:
        """All rows and columns as Spark read them after a step, by default the last one."""
        return _parquet(TABLES / self.name / f"{step or self.steps[-1]}.rows.parquet")

    def answer(self, where: str, step: str | None = None) -> pa.Table:
        """The rows for which Spark evaluates `where` to TRUE after a step, by default the last one.

        Raises:
            LookupError: the recipe does not keep this answer.
        """
        answers = _answers(self.name)
        key = step or self.steps[-1], where
        if key not in answers:
            raise LookupError(
                f"{self.name} has no answer to {key}: add it to its recipe. {_REMEDY}"
            )
        return self.rows(step).take(answers[key])


Golden = Callable[[str], GoldenTable]
"""Golden tables by name: the type of the fixture `golden`."""


def unpack(name: str, folder: Path) -> GoldenTable:
    """Unpacks a golden table into an empty folder."""
    archive = TABLES / name / "table.tar.xz"
    if not archive.exists():
        raise LookupError(f"There is no golden table {name}. {_REMEDY}")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return GoldenTable(name, folder)


def pack(folder: Path, archive: Path) -> None:
    """Packs the folders of a table's steps. A file shared by several steps is stored once."""
    first: dict[tuple[Path, str], str] = {}

    def stored(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mode = 0o755 if entry.isdir() else 0o644
        if entry.isfile():
            path = folder / entry.name
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            original = first.setdefault((Path(*Path(entry.name).parts[1:]), digest), entry.name)
            if original != entry.name:
                entry.type, entry.linkname, entry.size = tarfile.LNKTYPE, original, 0
        return entry

    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:xz", preset=9) as tar:
        for path in sorted(folder.rglob("*")):
            tar.add(path, str(path.relative_to(folder)), recursive=False, filter=stored)


def layout(step: Path) -> Mapping[str, int]:
    """The number of files of each kind in each partition, and the actions on the timeline: what two
    runs of one recipe have in common, apart from names with times and random parts."""
    found: dict[str, int] = {}
    for file in _files(step):
        if file.name.startswith(".") and file.suffix == ".crc":
            continue
        if file.parts[0] == ".hoodie":
            if "timeline" not in file.parts[:2] and len(file.parts) > 2:
                continue
            kind = file.name.partition(".")[2] or file.name
        else:
            kind = "log file" if ".log." in file.name else file.suffix or file.name
        key = f"{file.parent}: {kind}"
        found[key] = found.get(key, 0) + 1
    return found


def _files(table: Path) -> Iterator[Path]:
    """Hudi's files of a table, as relative paths."""
    for parent, folders, names in os.walk(table):
        inside = Path(parent).relative_to(table)
        folders[:] = [name for name in folders if inside / name != _INDEX]
        yield from (inside / name for name in names)


def _same(one: Path, other: Path) -> bool:
    first, second = one.stat(), other.stat()
    return (first.st_size, first.st_mtime_ns) == (second.st_size, second.st_mtime_ns)


@cache
def _parquet(path: Path) -> pa.Table:
    return pq.read_table(path)


@cache
def _answers(name: str) -> Mapping[tuple[str, str], pa.Array]:
    table = _parquet(TABLES / name / "answers.parquet")
    return {
        (step.as_py(), where.as_py()): rows.values
        for step, where, rows in zip(*table.columns, strict=True)
    }
