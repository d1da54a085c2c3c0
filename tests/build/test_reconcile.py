"""What is due after each thing that Hudi does to a table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.build.strategy import Strategy, selector
from hudi_index_service.config import BuildSettings, Settings
from hudi_index_service.definitions import Column, IndexDefinition, SeenTimeline
from hudi_index_service.errors import SnapshotChanged
from hudi_index_service.table.protocol import BaseFile, HudiTable, Instant, ServiceKind
from tests.hudi_tables import (
    IN_PROCESS_LOCK,
    NO_METADATA_TABLE,
    hudi_options,
    numbered_rows,
    run_clustering,
    run_compaction,
    write,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OpenTable = Callable[..., IndexedTable]


@pytest.fixture
def opened(tmp_path: Path) -> OpenTable:
    """Opens a table, with the setting `build.on` if it is given."""

    def open_with(path: Path, *on: str) -> IndexedTable:
        build = BuildSettings.model_validate({"on": on} if on else {})
        return open_table(path, settings=Settings(cache_folder=tmp_path / "cache", build=build))

    return open_with


def instants_due(table: IndexedTable) -> list[str]:
    return [entry.base_file.instant for entry in table.build(dry_run=True).due]


def latest(table: IndexedTable) -> str:
    return table._table.completed_instants()[-1].requested


def test_copy_on_write(spark: "SparkSession", opened: OpenTable, tmp_path: Path) -> None:
    path = tmp_path / "cow"
    options = hudi_options("cow", **IN_PROCESS_LOCK)
    write(numbered_rows(spark, 0, 20).coalesce(1), path, options, "bulk_insert", mode="overwrite")
    table, eager = opened(path), opened(path, "clustering", "compaction", "commit")
    table.create_index("by_amount", ["amount"])
    assert instants_due(table) == []
    assert instants_due(eager) == [], "written before the index was defined"

    # A plain commit writes a base file: due only where commits count.
    write(numbered_rows(spark, 5, 6, version=1), path, options)
    assert instants_due(table) == []
    assert instants_due(eager) == [latest(table)]

    # Planned clustering has written nothing yet.
    run_clustering(spark, path, "schedule")
    assert instants_due(table) == []
    run_clustering(spark, path, "execute")
    clustered = latest(table)
    assert instants_due(table) == instants_due(eager) == [clustered]
    assert instants_due(opened(path, "compaction")) == []
    table.build()
    assert instants_due(table) == []
    spark.sql(f"call create_savepoint(path => '{path}', commit_time => '{clustered}')").collect()

    # An insert overwrite is a replace commit, too, and no table service.
    write(numbered_rows(spark, 0, 30).coalesce(1), path, options, "insert_overwrite_table")
    assert instants_due(table) == []
    assert instants_due(eager) == [latest(table)]

    # Clustered once more, and all of that is undone before anything was built: the savepoint's base
    # file is back, and its entry serves again.
    run_clustering(spark, path)
    assert instants_due(table) == [latest(table)]
    spark.sql(
        f"call rollback_to_savepoint(path => '{path}', instant_time => '{clustered}')"
    ).collect()
    assert instants_due(table) == []
    assert table.scan("amount >= 0", use_index="require").count() == 20
    for file in Path(path, ".hoodie/.index/lucene").rglob("*.*"):
        file.unlink()
    assert instants_due(table) == [clustered]


def test_merge_on_read(spark: "SparkSession", opened: OpenTable, tmp_path: Path) -> None:
    path = tmp_path / "mor"
    options = hudi_options("mor", "MERGE_ON_READ", **NO_METADATA_TABLE)
    write(numbered_rows(spark, 0, 20).coalesce(1), path, options, "bulk_insert", mode="overwrite")
    table, eager = opened(path), opened(path, "compaction", "commit")
    table.create_index("by_amount", ["amount"])

    # Updates go to a log file; inserts into a base file of their own, by a delta commit.
    write(numbered_rows(spark, 0, 2, version=1), path, options)
    assert instants_due(eager) == []
    write(numbered_rows(spark, 20, 25).coalesce(1), path, options, "insert")
    delta_commit = latest(table)
    assert instants_due(table) == []
    assert instants_due(eager) == [delta_commit]

    run_compaction(spark, path, "schedule")
    assert instants_due(table) == []
    run_compaction(spark, path, "run")
    compacted = latest(table)
    assert instants_due(table) == [compacted]
    assert instants_due(opened(path, "clustering")) == []
    table.build()
    assert instants_due(table) == []
    assert instants_due(eager) == [delta_commit]


@dataclass
class TimelineOf:
    """As much of a table as a strategy asks for."""

    kinds: Mapping[str, ServiceKind | None]

    def completed_instants(self) -> tuple[Instant, ...]:
        return tuple(Instant(requested, "commit") for requested in self.kinds)

    def service_kind(self, instant: Instant) -> ServiceKind:
        kind = self.kinds[instant.requested]
        if kind is None:
            raise SnapshotChanged(f"Instant {instant.requested} is not in the active timeline.")
        return kind


@pytest.mark.parametrize(
    ("instant", "due"),
    [
        ("10", False),  # before the timeline that the definition saw
        ("20", False),  # on it
        ("25", True),  # neither on it nor on the active one: archived since
        ("30", True),  # clustering
        ("40", False),  # a plain commit
        ("50", True),  # archived while its metadata was asked for
    ],
)
def test_an_instant_that_nobody_knows_is_due(instant: str, due: bool) -> None:
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


def test_all_wants_everything() -> None:
    wanted = selector(Strategy.ALL, cast(HudiTable, TimelineOf({})), ())
    assert wanted(cast(Any, None), BaseFile("f.parquet", "", "f", "10", 1))
