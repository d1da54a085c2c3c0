"""Builds on real tables: what is due, what is built, and that a repeated build does nothing."""

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.build.entry.task import TaskStatus
from hudi_index_service.build.outcomes import Build
from hudi_index_service.config import BuildSettings, Settings
from hudi_index_service.errors import BuildFailed, BuildInProgress, ConfigInvalid
from hudi_index_service.index.metadata.build_records import (
    BUILDS_FOLDER,
    BuildProgress,
    BuildRecords,
)
from hudi_index_service.storage.store import Storage
from tests.build.entries import (
    all_manifests,
    assert_no_stray_data,
    columns,
    data_files,
    manifests,
)
from tests.edited_tables import make_unreadable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def partitions(build: Build) -> list[str]:
    """The partitions of the base files that were due."""
    return sorted(entry.base_file.partition for entry in build.due)


def test_incremental_builds_what_clustering_wrote(cow: IndexedTable) -> None:
    build = cow.build()

    # The even ids' partition was rewritten by an upsert, which is no table service: not due.
    assert partitions(build) == ["2026-01-02"]
    assert [outcome.status for outcome in build.outcomes] == [TaskStatus.BUILT]
    assert build.outcomes[0].rows == 50
    (manifest,) = manifests(cow.uri)
    assert columns(manifest) == ["amount", "msg"]
    assert list(manifest.definitions) == ["early"]
    assert_no_stray_data(cow.uri)
    assert cow.scan("amount = 3").count() == 1


def test_all_builds_every_base_file(cow: IndexedTable) -> None:
    seen: list[tuple[int, int]] = []
    reported: list[BuildProgress] = []
    build = cow.build(
        strategy="all", progress=lambda done, of: seen.append((done, of)), details=reported.append
    )

    assert seen[-1] == (2, 2)
    rows = sum(each.rows for each in build.built)
    assert (reported[-1].files_done, reported[-1].rows_done, reported[-1].rows) == (2, rows, rows)
    assert partitions(build) == ["2026-01-01", "2026-01-02"]
    assert len(build.built) == 2
    assert not build.failed
    assert cow.scan("msg = 'Buying car 3'", use_index="require").count() == 14
    assert [(s.base_files, s.covered) for s in cow.status()] == [(2, 2)]
    assert cow.verify().problems == ()


def test_building_twice_is_a_no_op(cow: IndexedTable) -> None:
    cow.build(strategy="all")
    before = {path: path.stat().st_mtime_ns for path in Path(cow.uri).rglob("*")}

    again = cow.build(strategy="all")

    assert (again.due, again.id) == ((), "")
    assert {path: path.stat().st_mtime_ns for path in Path(cow.uri).rglob("*")} == before


def test_partitions_and_instants_narrow_a_build(cow: IndexedTable) -> None:
    assert partitions(cow.build(strategy="all", partitions=["2026-01-01/"], dry_run=True)) == [
        "2026-01-01"
    ]
    clustering = cow.build(dry_run=True).due[0].base_file.instant
    assert partitions(cow.build(strategy="all", instant=clustering, dry_run=True)) == ["2026-01-02"]
    with pytest.raises(ConfigInvalid, match="'absent'"):
        cow.build(strategy="all", partitions=["absent"])


def test_clustering_before_the_definition_is_not_due(cow: IndexedTable) -> None:
    cow.drop_index("early")
    cow.create_index("late", ["msg"])
    assert cow.build().due == ()
    assert len(cow.build(strategy="all", dry_run=True).due) == 2


def test_a_compacted_file_is_built_and_later_logs_are_merged(mor: IndexedTable) -> None:
    build = mor.build()

    assert [outcome.status for outcome in build.outcomes] == [TaskStatus.BUILT]
    assert build.outcomes[0].rows == 100
    (status,) = mor.status()
    assert (status.base_files, status.covered) == (1, 1)
    assert mor.scan("amount = 3").count() == 0
    assert mor.scan("amount = 4").to_arrow().num_rows == 1  # id 1, after the first upsert
    assert mor.scan("amount = 299").to_arrow().num_rows == 1  # id 99, from the log file


def test_a_later_definition_adds_a_generation_that_keeps_the_columns(cow: IndexedTable) -> None:
    cow.build(strategy="all")
    cow.create_index("keys", ["id"])

    build = cow.build(strategy="all")

    assert len(build.built) == 2
    assert [manifest.generation for manifest in manifests(cow.uri)] == [2, 2]
    for manifest in manifests(cow.uri):
        assert columns(manifest) == ["amount", "id", "msg"]
        assert sorted(manifest.definitions) == ["early", "keys"]
    assert len(all_manifests(cow.uri)) == 4, "manifests are never replaced"
    assert_no_stray_data(cow.uri)
    assert cow.scan("id = '7' and amount = 21", use_index="require").count() == 1


def test_an_entry_with_missing_data_is_rebuilt(cow: IndexedTable) -> None:
    cow.build(strategy="all")
    data_files(cow.uri)[0].unlink()

    assert cow.scan("amount = 3").count() == 1
    build = cow.build(strategy="all")

    assert len(build.built) == 1
    assert [status.covered for status in cow.status()] == [2]


def test_a_damaged_manifest_is_superseded(cow: IndexedTable) -> None:
    cow.build(strategy="all")
    manifest = all_manifests(cow.uri)[0]
    manifest.write_bytes(manifest.read_bytes()[:-30])

    build = cow.build(strategy="all")

    assert len(build.built) == 1
    assert sorted(m.generation for m in manifests(cow.uri)) == [1, 2]


def test_entries_of_a_newer_format_are_not_rebuilt(cow: IndexedTable) -> None:
    cow.build(strategy="all")
    for manifest in all_manifests(cow.uri):
        manifest.write_text('{"format": [2, 0]}')

    assert cow.build(strategy="all").due == ()
    cow.create_index("keys", ["id"])
    assert cow.build(strategy="all").due == ()
    assert cow.scan("amount = 3").count() == 1
    assert cow.status()[0].covered == 0


def test_one_damaged_base_file_fails_alone(cow: IndexedTable) -> None:
    due = cow.build(strategy="all", partitions=["2026-01-01"], dry_run=True).due
    path = due[0].base_file.path
    repair = make_unreadable(Path(cow.uri, path))

    build = cow.build(strategy="all")

    assert len(build.built) == 1
    (failure,) = build.failed
    assert failure.path == path
    assert failure.error
    with pytest.raises(BuildFailed, match=rf"1 of 2 entries could not be built\. {path}: "):
        build.raise_for_failures()
    (record,) = cow.builds()
    assert record.state == "failed"
    assert record.finished is not None
    assert (record.finished["built"], record.finished["failed"]) == (1, 1)
    repair()
    assert len(cow.build(strategy="all").built) == 1, "the next build retries it"


class Stop(Exception):
    """Raised by a caller to stop the build."""


def test_an_aborted_build_is_recorded_and_leaves_complete_entries(
    cow: IndexedTable, tmp_path: Path
) -> None:
    settings = Settings(cache_folder=tmp_path, build=BuildSettings(parallelism=1))
    table = open_table(cow.uri, settings=settings)

    def stop(done: int, of: int) -> None:
        raise Stop

    with pytest.raises(Stop):
        table.build(strategy="all", progress=stop)

    (record,) = table.builds()
    assert record.state == "failed"
    assert record.finished is not None
    assert "Stop" in record.finished["error"]
    assert_no_stray_data(table.uri)
    table.build(strategy="all")
    assert table.status()[0].covered == 2


def test_spark_builds_the_same_entries(
    cow: IndexedTable, spark: "SparkSession", tmp_path: Path
) -> None:
    spark_table = open_table(shutil.copytree(cow.uri, tmp_path / "spark"), spark=spark)
    cow.build(strategy="all")
    built_by_threads = manifests(cow.uri)

    build = spark_table.build(strategy="all")

    assert len(build.built) == 2
    for thread_built, spark_built in zip(built_by_threads, manifests(spark_table.uri), strict=True):
        same = ("base_file", "columns", "definitions", "index_type", "generation")
        assert [getattr(thread_built, name) for name in same] == [
            getattr(spark_built, name) for name in same
        ]
        assert [m.name for m in thread_built.data.members] == [
            m.name for m in spark_built.data.members
        ]
    assert_no_stray_data(spark_table.uri)


def test_a_running_build_blocks_another(cow: IndexedTable) -> None:
    records = BuildRecords(Storage(cow.uri), stale_seconds=60)
    running = records.start({"strategy": "all"})
    running.beat()

    with pytest.raises(BuildInProgress, match=r"Build 000001, started .* works on"):
        cow.build(strategy="all")
    assert [record.state for record in cow.builds()] == ["running"]
    running.finish({"failed": 0})
    assert len(cow.build(strategy="all").built) == 2


def test_a_build_without_heartbeats_is_dead(cow: IndexedTable) -> None:
    BuildRecords(Storage(cow.uri), stale_seconds=60).start({}).beat()
    for path in Path(cow.uri, BUILDS_FOLDER).rglob("*"):
        os.utime(path, (1_000_000, 1_000_000))

    assert [record.state for record in cow.builds()] == ["dead"]
    assert cow.build(strategy="all").id == "000002"
    assert [record.state for record in cow.builds()] == ["finished", "dead"]
