"""What is due after each operation of Hudi on a table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.build.strategy import Strategy, selector
from hudi_index_service.config import BuildSettings, Settings
from hudi_index_service.errors import SnapshotChanged
from hudi_index_service.hudi.snapshot import BaseFile, Instant, ServiceKind
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.hudi.timeline import Timeline, parse_timeline
from hudi_index_service.index.metadata.definitions import Column, IndexDefinition, SeenTimeline
from tests.golden.table import Golden

OpenTable = Callable[..., IndexedTable]


@pytest.fixture
def opened(tmp_path: Path) -> OpenTable:
    """Opens a table, with the setting `build.on` if given."""

    def open_with(path: Path, *on: str) -> IndexedTable:
        build = BuildSettings.model_validate({"on": on} if on else {})
        return open_table(path, settings=Settings(cache_folder=tmp_path / "cache", build=build))

    return open_with


def instants_due(table: IndexedTable) -> list[str]:
    return [entry.base_file.instant for entry in table.build(dry_run=True).due]


def latest(table: IndexedTable) -> str:
    return table.hudi_table.completed_instants()[-1].requested


def test_due_base_files_of_a_copy_on_write_table(
    golden: Golden, opened: OpenTable, tmp_path: Path
) -> None:
    hudi = golden("undone")
    path = hudi.put(tmp_path / "cow", "written")
    table, eager = opened(path), opened(path, "clustering", "compaction", "commit")
    table.create_index("by_amount", ["amount"])
    assert instants_due(table) == []
    assert instants_due(eager) == [], "written before the index was defined"

    # A plain commit writes a base file, which is due only if `build.on` has commits.
    hudi.put(path, "updated")
    assert instants_due(table) == []
    assert instants_due(eager) == [latest(table)]

    # Planned clustering has not written anything yet.
    hudi.put(path, "clustering planned")
    assert instants_due(table) == []
    hudi.put(path, "clustered")
    clustered = latest(table)
    assert instants_due(table) == instants_due(eager) == [clustered]
    assert instants_due(opened(path, "compaction")) == []
    table.build()
    assert instants_due(table) == []

    # An insert overwrite is a replace commit too, but no table service.
    hudi.put(path, "overwritten")
    assert instants_due(table) == []
    assert instants_due(eager) == [latest(table)]

    # Clustered again, then that and the overwrite are rolled back before anything was built: the
    # base file of the first clustering is back, and its entry is used again.
    hudi.put(path, "clustered again")
    assert instants_due(table) == [latest(table)]
    hudi.put(path, "undone")
    assert instants_due(table) == []
    assert table.scan("amount >= 0", use_index="require").count() == 20
    for file in Path(path, ".hoodie/.index/lucene").rglob("*.*"):
        file.unlink()
    assert instants_due(table) == [clustered]


def test_due_base_files_of_a_merge_on_read_table(
    golden: Golden, opened: OpenTable, tmp_path: Path
) -> None:
    hudi = golden("inserted_and_compacted")
    path = hudi.put(tmp_path / "mor", "written")
    table, eager = opened(path), opened(path, "compaction", "commit")
    table.create_index("by_amount", ["amount"])

    # Updates go to a log file; inserts go to a new base file, written by a delta commit.
    hudi.put(path, "updated")
    assert instants_due(eager) == []
    hudi.put(path, "inserted")
    delta_commit = latest(table)
    assert instants_due(table) == []
    assert instants_due(eager) == [delta_commit]

    hudi.put(path, "compaction planned")
    assert instants_due(table) == []
    hudi.put(path, "compacted")
    compacted = latest(table)
    assert instants_due(table) == [compacted]
    assert instants_due(opened(path, "clustering")) == []
    table.build()
    assert instants_due(table) == []
    assert instants_due(eager) == [delta_commit]


@dataclass
class TimelineOf:
    """The part of a table that a strategy uses."""

    kinds: Mapping[str, ServiceKind | None]

    def timeline(self) -> Timeline:
        return parse_timeline(f"{requested}.commit" for requested in self.kinds)

    def service_kind(self, instant: Instant) -> ServiceKind:
        kind = self.kinds[instant.requested]
        if kind is None:
            raise SnapshotChanged(f"Instant {instant.requested} is not in the active timeline.")
        return kind


@pytest.mark.parametrize(
    ("instant", "due"),
    [
        ("10", False),  # before the start of the timeline that the definition saw
        ("20", False),  # on it
        ("25", True),  # neither on it nor on the active timeline: archived since
        ("30", True),  # clustering
        ("40", False),  # a plain commit
        ("50", True),  # archived while its metadata was being read
    ],
)
def test_an_instant_of_unknown_kind_is_due(instant: str, due: bool) -> None:
    active = {
        "30": ServiceKind.CLUSTERING,
        "40": ServiceKind.NONE,
        "50": None,
    }
    definition = IndexDefinition.model_validate(
        {
            "name": "i",
            "version": 1,
            "index_types": ("lucene",),
            "columns": (Column(name="a"),),
            "seen": SeenTimeline(start="20", instants=("20",)),
            "created": "2026-11-21T04:23:38.681+00:00",
        }
    )
    wanted = selector(
        Strategy.INCREMENTAL, cast(HudiTable, TimelineOf(active)), ("clustering", "compaction")
    )

    assert wanted(definition, BaseFile(f"f_{instant}.parquet", "", "f", instant, 1)) is due


def test_all_selects_every_base_file() -> None:
    wanted = selector(Strategy.ALL, cast(HudiTable, TimelineOf({})), ())
    assert wanted(cast(Any, None), BaseFile("f.parquet", "", "f", "10", 1))
