"""Golden tables: what real Spark and Hudi wrote, kept in the repository, for tests without Spark.

A golden table is a folder below ``tests/golden/tables``: an archive with the table's files at each
step of its life, and as Parquet the rows that Spark read at each step and what it answered.
``make golden`` writes them by the recipes in ``tests/golden/recipes``; the Spark tier of the tests
writes them anew and compares (``test_golden_tables.py``).
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
        name: Of its recipe.
        folder: A folder for each step, with the table's files; never to be changed.
    """

    name: str
    folder: Path

    @property
    def steps(self) -> list[str]:
        """The steps of the table's life, in order."""
        return (self.folder / "steps").read_text("utf-8").splitlines()

    def put(self, path: Path, step: str | None = None) -> Path:
        """Makes the table at `path` what it was after a step, the last one by default.

        Hudi's files come, change and go as they did when the table was written; the service's own
        folder, ``.hoodie/.index``, stays. So a test can build an index between two writes.

        Returns:
            `path`.
        """
        source = self.folder / (step or self.steps[-1])
        wanted = set(_files(source))
        for gone in set(_files(path)) - wanted if path.exists() else ():
            (path / gone).unlink()
        for file in wanted:
            target = path / file
            if not target.exists() or not _same(source / file, target):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source / file, target)
        return path

    def rows(self, step: str | None = None) -> pa.Table:
        """All rows and columns, as Spark read them after a step, the last one by default."""
        return _parquet(TABLES / self.name / f"{step or self.steps[-1]}.rows.parquet")

    def answer(self, where: str, step: str | None = None) -> pa.Table:
        """The rows for which Spark says TRUE to `where` after a step, the last one by default.

        Raises:
            LookupError: the recipe does not ask that.
        """
        answers = _answers(self.name)
        key = step or self.steps[-1], where
        if key not in answers:
            raise LookupError(
                f"{self.name} has no answer to {key}: add it to its recipe. {_REMEDY}"
            )
        return self.rows(step).take(answers[key])


Golden = Callable[[str], GoldenTable]
"""Golden tables by name: what the fixture `golden` is."""


def unpack(name: str, folder: Path) -> GoldenTable:
    """Unpacks a golden table into an empty folder."""
    archive = TABLES / name / "table.tar.xz"
    if not archive.exists():
        raise LookupError(f"There is no golden table {name}. {_REMEDY}")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return GoldenTable(name, folder)


def pack(folder: Path, archive: Path) -> None:
    """Packs the folders of a table's steps. A file that several steps share is stored once."""
    first: dict[tuple[Path, str], str] = {}

    def stored(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mode = 0o755 if entry.isdir() else 0o644
        if entry.isfile():
            path = folder / entry.name
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            earlier = first.setdefault((Path(*Path(entry.name).parts[1:]), digest), entry.name)
            if earlier != entry.name:
                entry.type, entry.linkname, entry.size = tarfile.LNKTYPE, earlier, 0
        return entry

    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:xz", preset=9) as tar:
        for path in sorted(folder.rglob("*")):
            tar.add(path, str(path.relative_to(folder)), recursive=False, filter=stored)


def layout(step: Path) -> Mapping[str, int]:
    """How many files of each kind a table has in each partition, and which actions on its timeline:
    what two writings of one recipe have in common, names with times and random parts aside."""
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
    """Hudi's files of a table, relative to it."""
    for parent, folders, names in os.walk(table):
        inside = Path(parent).relative_to(table)
        folders[:] = [name for name in folders if inside / name != _INDEX]
        yield from (inside / name for name in names)


def _same(one: Path, other: Path) -> bool:
    mine, its = one.stat(), other.stat()
    return (mine.st_size, mine.st_mtime_ns) == (its.st_size, its.st_mtime_ns)


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
