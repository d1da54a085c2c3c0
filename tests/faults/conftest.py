"""A real table in several states, written once; every case works on a copy of its own."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hudi_index_service import open_table
from tests.faults.invariants import INDEX, QUERIES, Expected
from tests.hudi_tables import (
    NO_METADATA_TABLE,
    hudi_options,
    numbered_rows,
    read_rows,
    run_clustering,
    write,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REWRITTEN = tuple(f"rewritten {version}" for version in (1, 2, 3))
CLEANED = REWRITTEN[-1]


@dataclass(frozen=True)
class State:
    """A table as it was at one time.

    Attributes:
        path: Where it lies; never changed.
        expected: What Spark answers.
    """

    path: Path
    expected: Expected


@pytest.fixture(scope="session")
def states(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> dict[str, State]:
    """States of one table of two partitions.

    defined: Clustered; the index ``early`` on msg and amount is due for both base files.
    indexed: ``early`` is built, and then ``keys`` on id: every entry has two generations.
    rewritten 1, 2, 3: The odd ids' partition was written anew so many times; meanwhile Hudi has
        cleaned the base file that was indexed there.
    """
    folder = tmp_path_factory.mktemp("states")
    path = folder / "table"
    options = hudi_options(
        "t", partition_column="dt", **{"hoodie.clean.commits.retained": "1"}, **NO_METADATA_TABLE
    )
    states: dict[str, State] = {}

    def keep(name: str) -> None:
        rows = read_rows(spark, path)
        expected = {
            where: sorted(row["id"] for row in rows.where(where).select("id").collect())
            for where in QUERIES
        }
        states[name] = State(Path(shutil.copytree(path, folder / name)), expected)

    write(numbered_rows(spark, 0, 100), path, options, "bulk_insert", mode="overwrite")
    table = open_table(path)
    table.create_index("early", ["msg", "amount"])
    run_clustering(spark, path)
    keep("defined")
    table.build().raise_for_failures()
    table.create_index("keys", ["id"])
    assert len(table.build(strategy="all").raise_for_failures().built) == 2
    keep("indexed")
    for version, name in enumerate(REWRITTEN, 1):
        odd = numbered_rows(spark, 0, 100, version=version).where("dt = '2026-01-02'")
        write(odd, path, options)
        keep(name)
    assert any(each.path.endswith(".pack") for each in table.clean(dry_run=True).removals)
    return states


CopyState = Callable[[str], Path]


@pytest.fixture
def copy_state(states: dict[str, State], tmp_path: Path) -> Iterator[CopyState]:
    """Copies a state for one case. Hudi's files are linked: nobody may ever change one."""
    number = count(1)

    def copy(name: str) -> Path:
        target = tmp_path / f"{name}-{next(number)}"
        shutil.copytree(states[name].path, target, copy_function=_link_or_copy)
        return target

    yield copy
    shutil.rmtree(tmp_path)


def _link_or_copy(source: str, target: str) -> None:
    if INDEX in source:
        shutil.copy2(source, target)
    else:
        os.link(source, target)
