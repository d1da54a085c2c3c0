"""Indexed Hudi tables with awkward values, in the states that queries meet."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_index_service import Column, IndexedTable, open_table
from tests.golden.table import Golden, GoldenTable
from tests.indexed import indexed

COLUMNS = [
    "name",
    Column(name="msg", options={"analyzer": "standard"}),
    "price",
    "ratio",
    "amount",
    "small",
    "flag",
    "born",
    "seen",
    "cost",
    "huge",
    "raw",
    "tags",
    "codes",
    "place.City",
    "place.zip",
    "place.geo.lat",
]


@dataclass(frozen=True)
class Indexed:
    """A table on disk, opened without Spark, and what Spark read and answered.

    Attributes:
        golden: The golden table whose last step this is.
    """

    path: Path
    table: IndexedTable
    golden: GoldenTable

    def answer(self, where: str | None = None) -> pa.Table:
        """What plain Spark returned."""
        return self.golden.rows() if where is None else self.golden.answer(where)

    def ids(self, where: str) -> list[str]:
        """The keys of the rows that plain Spark returned, sorted."""
        return sorted(self.answer(where).column("id").to_pylist())


def _indexed(table: GoldenTable, path: Path, *, defined: str, built: str) -> Indexed:
    """The table at its last step, with an index defined and built at earlier steps."""
    opened = open_table(table.put(path, defined))
    opened.create_index("all_columns", COLUMNS)
    table.put(path, built)
    opened.build().raise_for_failures()
    return Indexed(table.put(path), opened, table)


def unindexed_copy(path: Path, target: Path) -> IndexedTable:
    """A copy of one of these tables, without its index."""
    shutil.copytree(path, target)
    table = open_table(target)
    table.drop_index("all_columns", purge=True)
    return table


@pytest.fixture(scope="session")
def clustered(
    golden: Golden, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[bool], Indexed]:
    """Clustered copy-on-write tables, partitioned or not; every slice is covered."""

    @cache
    def make(partitioned: bool) -> Indexed:
        table = golden("awkward_clustered_partitioned" if partitioned else "awkward_clustered")
        path = tmp_path_factory.mktemp("clustered")
        return _indexed(table, path, defined="written", built="clustered")

    return make


@pytest.fixture(scope="session")
def half_covered(golden: Golden, tmp_path_factory: pytest.TempPathFactory) -> Indexed:
    """A copy-on-write table; a later upsert rewrote one partition, which is scanned."""
    path = tmp_path_factory.mktemp("half_covered")
    return _indexed(golden("awkward_half_clustered"), path, defined="written", built="clustered")


@pytest.fixture(scope="session")
def with_logs(
    golden: Golden, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[bool], Indexed]:
    """Compacted merge-on-read tables with later updates and deletes in log files, partitioned or
    not."""

    @cache
    def make(partitioned: bool) -> Indexed:
        table = golden("awkward_with_logs_partitioned" if partitioned else "awkward_with_logs")
        path = tmp_path_factory.mktemp("with_logs")
        return _indexed(table, path, defined="updated", built="compacted")

    return make


@pytest.fixture(scope="module")
def many(golden: Golden, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hundred base files, indexed by key."""
    path = golden("hundred_base_files").put(tmp_path_factory.mktemp("many"))
    indexed(path, ["_hoodie_record_key"], name="by_key").close()
    return path
