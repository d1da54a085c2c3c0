"""Indexed Hudi tables with awkward values, in the states that queries meet."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_index_service import Column, IndexedTable, open_table
from tests.golden.table import GoldenTable

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


def unindexed_copy(path: Path, target: Path) -> IndexedTable:
    """A copy of one of these tables, without its index."""
    table = open_table(shutil.copytree(path, target))
    table.drop_index("all_columns", purge=True)
    return table


def columns_for(using: str) -> list[str | Column]:
    """The columns, with options that only Lucene has if that is the index type."""
    return [each if isinstance(each, str) or using == "lucene" else each.name for each in COLUMNS]


STATES = {
    "clustered": ("awkward_clustered", "written", "clustered"),
    "clustered, partitioned": ("awkward_clustered_partitioned", "written", "clustered"),
    "half covered": ("awkward_half_clustered", "written", "clustered"),
    "with logs": ("awkward_with_logs", "updated", "compacted"),
    "with logs, partitioned": ("awkward_with_logs_partitioned", "updated", "compacted"),
}
"""Name → golden table, and the steps at which its index is defined and built. In copy-on-write
tables, every slice is covered, or a later upsert rewrote one partition, which is scanned; tables
with logs have later updates and deletes in log files."""


@pytest.fixture(scope="session")
def awkward(golden, tmp_path_factory) -> Callable[[str], Indexed]:
    """The tables by the names of `STATES`, at their last steps: not to be changed."""

    @cache
    def make(name):
        golden_name, defined, built = STATES[name]
        table, path = golden(golden_name), tmp_path_factory.mktemp("awkward")
        opened = open_table(table.put(path, defined))
        opened.create_index("all_columns", COLUMNS)
        table.put(path, built)
        opened.build().raise_for_failures()
        return Indexed(table.put(path), opened, table)

    return make


@pytest.fixture
def copied(awkward, tmp_path) -> Path:
    """A copy of the clustered, partitioned table that a test may change."""
    return shutil.copytree(awkward("clustered, partitioned").path, tmp_path / "table")


@pytest.fixture
def opened(golden_index, request) -> Callable[..., IndexedTable]:
    """Opens a golden table with an index on some columns, and all of its entries."""

    def opened(name, columns, **options):
        table = open_table(golden_index(name, columns, **options))
        request.addfinalizer(table.close)
        for column in columns:
            table.scan(f"{column} IS NOT NULL", use_index="require").row_ids()
        return table

    return opened


@pytest.fixture
def recorded(monkeypatch) -> Callable[..., list[Any]]:
    """Replaces a function of a module, or a method of a class, by one that does the same; returns
    the list to which each call adds what `note` makes of its arguments."""

    def record(owner, name, note):
        noted, original = [], getattr(owner, name)

        def recording(*arguments, **options):
            noted.append(note(*arguments, **options))
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, recording)
        return noted

    return record


@pytest.fixture
def many(golden_index) -> Path:
    """A hundred base files, indexed by key: not to be changed."""
    return golden_index("hundred_base_files", ["_hoodie_record_key"], name="by_key")
