"""A table that moves through its states, together with an index."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import Settings
from tests.same_rows import assert_same_rows

COLUMNS = ["id", "msg", "city", "amount", "price", "rate", "day", "at", "ok", "ts", "region", "dt"]
INDEX_FOLDER = Path(".hoodie", ".index")


class State:
    """A table's state as kept by a Hudi release's run, with Spark's answers at that time.

    Attributes:
        folder: ``<table>/<state>`` in the folder of that run.
        instants: Every instant completed so far, even if archived → NONE, CLUSTER or COMPACT.
        active: The completed instants of the active timeline.
        base_files: Paths of the snapshot's base files.
        answers: Predicate → ids of the matching rows.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        recorded = json.loads((folder / "answers.json").read_text())
        self.instants: dict[str, str] = recorded["instants"]
        self.active = set(recorded["active"])
        self.base_files = set(recorded["base_files"])
        self.answers: dict[str, list[str]] = recorded["answers"]

    def rows(self, schema: pa.Schema) -> pa.Table:
        """All rows, in the types of `schema`."""
        return pq.read_table(self.folder / "rows").select(schema.names).cast(schema)

    def written_by(self, kind: str) -> set[str]:
        """The base files that instants of this kind wrote."""
        return {path for path in self.base_files if self.instants[instant_of(path)] == kind}


def instant_of(base_file: str) -> str:
    """The instant in a base file's name."""
    return base_file.rsplit("_", 1)[1].removesuffix(".parquet")


class Journey:
    """A table at a fixed path, moved from state to state as Hudi moved it, with its index in place.

    Args:
        tables: The folder of a release's tables.
        name: The table's name.
        scratch: A folder of this test.
    """

    def __init__(self, tables: Path, name: str, scratch: Path) -> None:
        self._tables = tables / name
        self._path = scratch / "table"
        self._settings = Settings(cache_folder=scratch / "cache")

    def to(self, state: str, tables: Path | None = None) -> tuple[IndexedTable, State]:
        """Puts the table into a state (of another run, with `tables`) and opens it."""
        reached = State((tables / self._tables.name if tables else self._tables) / state)
        index = self._path.with_name("index")
        if (self._path / INDEX_FOLDER).exists():
            (self._path / INDEX_FOLDER).rename(index)
        shutil.rmtree(self._path, ignore_errors=True)
        shutil.copytree(reached.folder / "table", self._path)
        if index.exists():
            index.rename(self._path / INDEX_FOLDER)
        return open_table(self._path, settings=self._settings), reached


def check_rows(table: IndexedTable, state: State) -> None:
    """The table has the same rows as in Spark, cell by cell, and the same base files."""
    rows = table.scan(columns=COLUMNS, use_index="never").to_arrow()
    assert_same_rows(rows, state.rows(rows.schema))
    assert {file.path for file in table.hudi_table.snapshot().base_files()} == state.base_files


def check_answers(table: IndexedTable, state: State, **how: Any) -> None:
    """The service finds the same rows as Spark for every predicate; it counts those of every second
    one. Which these are hangs on how many instants the state has."""
    for number, (predicate, expected) in enumerate(state.answers.items(), len(state.instants)):
        scan = table.scan(predicate, columns=["id"], **how)
        if number % 2:
            assert scan.count() == len(expected), predicate
        else:
            assert sorted(scan.to_arrow()["id"].to_pylist()) == expected, predicate


def due(table: IndexedTable, strategy: str = "incremental") -> set[str]:
    """The base files for which a build would create entries."""
    build = table.build(strategy=strategy, dry_run=True)  # type: ignore[arg-type]
    return {entry.base_file.path for entry in build.due}


def build(table: IndexedTable, strategy: str = "incremental") -> set[str]:
    """Builds; returns the base files with new entries."""
    done = table.build(strategy=strategy).raise_for_failures()  # type: ignore[arg-type]
    return {outcome.path for outcome in done.built}
