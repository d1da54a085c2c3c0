"""What `status` shows of a table's indexes, and its alerts."""

import json
import os
import shutil
from pathlib import Path
from time import time

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from hudi_index_service import IndexedTable
from hudi_index_service.cli.reports import status_lines, verify_lines
from hudi_index_service.index.metadata.build_records import BuildRecords
from hudi_index_service.index.metadata.manifest import Manifest
from hudi_index_service.maintain.status import PartitionCoverage, Thresholds, coverage_hints
from hudi_index_service.storage.store import Storage
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, write
from tests.indexed import OwnTable, indexed

FIRST, SECOND = "2026-01-01", "2026-01-02"


@pytest.fixture
def table(own_table: OwnTable) -> IndexedTable:
    """Merge on read, a base file in each of two partitions; the index ``by_amount``; then the even
    ids' partition compacted. The other partition's base file has a log file on top of it."""
    by_amount = {"name": "by_amount", "defined": "written", "build": False}
    return own_table("half_compacted", ["amount"], **by_amount)


def test_coverage_by_partition(table: IndexedTable) -> None:
    (before,) = table.status()
    assert (before.base_files, before.covered, before.coverage) == (2, 0, 0)

    table.build()
    (after,) = table.status()
    assert after.partitions == (
        PartitionCoverage(FIRST, base_files=1, covered=1),
        PartitionCoverage(SECOND, base_files=1, covered=0),
    )
    assert (after.covered, after.coverage) == (1, 0.5)

    table.build(strategy="all")
    (all_built,) = table.status()
    assert all_built.partitions[1] == PartitionCoverage(SECOND, 1, covered=1)
    assert all_built.index_bytes == sum(
        path.stat().st_size for path in Path(table.uri, ".hoodie/.index").rglob("*.pack")
    )


def test_lag_is_that_of_the_oldest_due_base_file(table: IndexedTable) -> None:
    (due,) = table.build(dry_run=True).due
    an_hour_ago = time() - 3600
    os.utime(Path(table.uri, due.base_file.path), (an_hour_ago, an_hour_ago))

    found = table.status()
    # The compaction, and the delta commit after it.
    assert (found[0].due, found[0].lag_instants, found.lag_instants) == (1, 2, 2)
    assert 3600 <= found[0].lag_seconds == found.lag_seconds < 4000

    table.build()
    (now,) = table.status()
    assert (now.due, now.lag_instants, now.lag_seconds) == (0, 0, 0)


def test_entries_that_outlive_their_base_file_are_counted(table: IndexedTable) -> None:
    table.build(strategy="all")
    assert (table.status().outliving.entries, table.status().outliving.bytes) == (0, 0)
    entries = Path(table.uri, ".hoodie/.index/lucene")
    (first, *_) = sorted(entries.iterdir())
    shutil.copytree(first, entries / "20200101000000000")

    outliving = table.status().outliving
    assert outliving.entries == 1
    assert outliving.bytes == sum(
        file.stat().st_size for file in (entries / "20200101000000000").rglob("*.*")
    )
    table.clean(grace_seconds=0)
    assert table.status().outliving.entries == 0


def test_the_running_build_is_shown_or_else_the_last(table: IndexedTable) -> None:
    assert table.status().build is None
    table.build()
    finished = table.status().build
    assert finished is not None
    assert (finished.id, finished.state) == ("000001", "finished")
    BuildRecords(Storage(table.uri), stale_seconds=60).start({"strategy": "all", "due": 1})
    running = table.status().build
    assert running is not None
    assert (running.id, running.state) == ("000002", "running")


def test_alerts(table: IndexedTable) -> None:
    nothing = Thresholds()
    strict = Thresholds(
        max_lag_seconds=0.0,
        max_lag_instants=1,
        min_coverage=0.6,
        max_outliving=0,
        failed_build=True,
    )
    assert table.status().alerts(nothing) == []
    lag, instants, coverage = table.status().alerts(strict)
    assert lag.startswith("Index by_amount (lucene) is ")
    assert lag.endswith(" s behind, more than 0.")
    assert instants == "Index by_amount (lucene) is 2 instants behind, more than 1."
    assert coverage == "Index by_amount (lucene) covers 0 of 2 base files, less than 60%."

    table.build()
    assert table.status().alerts(strict) == [
        "Index by_amount (lucene) covers 1 of 2 base files, less than 60%."
    ]
    (base_file,) = Path(table.uri, SECOND).glob("*.parquet")
    content = base_file.read_bytes()
    base_file.write_bytes(b"PAR1" + b"\0" * (len(content) - 8) + b"PAR1")
    table.build(strategy="all")
    assert table.status().alerts(strict)[-1] == "Build 000002 failed."
    assert table.status().alerts(Thresholds(failed_build=True)) == ["Build 000002 failed."]


def test_a_dead_build_is_an_alert_but_a_running_one_is_not(table: IndexedTable) -> None:
    BuildRecords(Storage(table.uri), stale_seconds=60).start({})
    thresholds = Thresholds(failed_build=True)
    assert table.status().alerts(thresholds) == []
    for file in Path(table.uri, ".hoodie/.index/_service/builds/000001").iterdir():
        os.utime(file, (0, 0))
    assert table.status().alerts(thresholds) == ["Build 000001 died."]


def test_bytes_that_indexes_share_are_counted_once(table: IndexedTable) -> None:
    indexed(table, ["msg"], name="by_msg")

    found = table.status()

    assert [each.shared_with for each in found] == [("by_msg",), ("by_amount",)]
    data_files = Path(table.uri, ".hoodie/.index").rglob("*.pack")
    assert found.index_bytes == sum(path.stat().st_size for path in data_files)
    assert [each.index_bytes for each in found] == [found.index_bytes] * 2
    total = f"All indexes: {found.index_bytes:,} bytes, counting shared files once."
    assert total in status_lines(found)
    assert any("shared with by_msg." in line for line in status_lines(found))


def test_hints_name_base_files_that_a_build_does_not_cover(table: IndexedTable) -> None:
    table.build()
    older, *others = coverage_hints(table.status())
    assert "Not indexed and not due: 1 of 2 base files for by_amount (lucene)." in older
    assert f"`hudi-index build {table.uri} --strategy all` indexes them." in older
    assert others == []

    table.build(strategy="all")
    assert coverage_hints(table.status()) == []

    table.drop_index("by_amount")
    (none,) = coverage_hints(table.status())
    assert f"`hudi-index create {table.uri} NAME COLUMN...`" in none


def test_a_damaged_entry_is_one_line_that_names_its_repair(table: IndexedTable) -> None:
    table.build(strategy="all")
    for manifest in Path(table.uri, ".hoodie/.index").rglob("manifest-0001.json"):
        manifest.write_bytes(b"not JSON")
    for facts in ("instants", "segments"):
        shutil.rmtree(Path(table.uri, ".hoodie/.index/_service", facts), ignore_errors=True)

    (damaged,) = coverage_hints(table.status())
    assert damaged in status_lines(table.status())
    assert damaged.startswith("Damaged, so scanned: the entries of 1 of 2 base files for by_amount")
    assert f"`hudi-index verify {table.uri} --repair` rebuilds them." in damaged
    *problems, _ = verify_lines(table.verify())
    assert [line.split(": ")[0] for line in problems] == ["damaged", "damaged"]
    assert [line.count("manifest-0001.json") for line in problems] == [1, 1]

    assert table.verify(repair=True).unrepaired == ()
    assert table.status()[0].damaged == 0
    assert table.status()[0].covered == 2


def test_entries_from_before_a_column_was_added_ask_for_a_refresh(table: IndexedTable) -> None:
    table.build(strategy="all")
    an_hour_ago = time() - 3600
    for base_file in Path(table.uri).rglob("*.parquet"):
        os.utime(base_file, (an_hour_ago, an_hour_ago))
    table.alter_index("by_amount", add=["msg"])

    changed = table.status()
    # The next incremental build takes the compacted one; the other waits for a refresh.
    assert (changed[0].covered, changed[0].due, changed[0].outdated) == (0, 1, 1)
    assert (changed.lag_instants, changed.lag_seconds) == (0, 0)
    (hint,) = coverage_hints(changed)
    assert "Not up to date: 1 of 2 base files for by_amount (lucene)." in hint
    assert f"`hudi-index refresh {table.uri} by_amount` updates them." in hint
    (alert,) = changed.alerts(Thresholds(max_lag_seconds=60, max_lag_instants=0, min_coverage=0.9))
    assert "less than 90%. 1 entry is not up to date: `hudi-index refresh" in alert
    assert "  Due: 1 base file." in list(status_lines(changed))

    table.refresh("by_amount").raise_for_failures()
    refreshed = table.status()
    assert (refreshed[0].covered, refreshed[0].outdated) == (2, 0)
    assert coverage_hints(refreshed) == []


def test_entries_of_a_newer_release_are_not_to_be_built_again(table: IndexedTable) -> None:
    table.build(strategy="all")
    for manifest in Path(table.uri, ".hoodie/.index/lucene").rglob("manifest-*.json"):
        document = json.loads(manifest.read_text())
        manifest.write_text(json.dumps({**document, "format": [99, 0]}))
    found = table.status()
    assert (found[0].covered, found[0].newer) == (0, 2)
    (hint,) = coverage_hints(found)
    assert hint.startswith("Of a newer release: the entries of 2 of 2 base files for by_amount")


@pytest.mark.parametrize(("version", "counts"), [(2, (0, 0, 2, 0)), (0, (1, 1, 0, 2))])
def test_entries_of_versions_that_are_not_read_do_not_count_as_covered(
    table: IndexedTable, version: int, counts: tuple[int, ...]
) -> None:
    table.build(strategy="all")
    for manifest in Path(table.uri, ".hoodie/.index/lucene").rglob("manifest-*.json"):
        stored = Manifest.from_json(manifest.read_bytes(), source="here")
        other = stored.model_copy(update={"index_type_version": version})
        manifest.write_bytes(other.to_json())

    (found,) = table.status()
    assert found.covered == 0
    assert (found.due, found.outdated, found.newer, sum(found.unread.values())) == counts


@pytest.mark.slow
def test_a_base_file_without_rows_needs_no_entry(spark: SparkSession, tmp_path: Path) -> None:
    options = hudi_options("emptied", partition_column="dt", **NO_METADATA_TABLE)
    rows = numbered_rows(spark, 0, 20)
    write(rows, tmp_path, options)
    table = indexed(tmp_path, ["amount"])
    write(rows.where(f"dt = '{FIRST}'"), tmp_path, options, "delete")

    found = table.status()
    files = [pq.read_metadata(path).num_rows for path in (tmp_path / FIRST).glob("*.parquet")]
    assert sorted(files) == [0, 10]
    assert found[0].covered == found[0].base_files == 2
    assert coverage_hints(found) == []


def test_reprs_are_short(table: IndexedTable) -> None:
    build = table.build(strategy="all")
    assert repr(build) == "<Build 000001 finished: 2 due, 2 built, 0 failed, 0 left>"
    assert repr(table.status()) == (
        f"<TableStatus of {table.uri}: <by_amount (lucene): 2 of 2 base files covered, 0 due>, "
        "build 000001 finished>"
    )
    scan = table.scan("amount < 9", columns=["id"], limit=3)
    assert repr(scan) == "<Scan where amount < 9, columns=['id'], limit=3>"
    explanation = scan.explain()
    assert repr(explanation).startswith("<Explanation of amount < 9: <QueryPlan at 20")
    assert repr(explanation).endswith(": 2 index>>")


def test_as_json(table: IndexedTable) -> None:
    table.build()
    reported = json.loads(json.dumps(table.status().to_dict(["something"])))

    assert list(reported) == [
        *("table", "at", "instant", "lag_instants", "lag_seconds", "outliving", "index_bytes"),
        *("indexes", "build", "builds", "failing", "alerts"),
    ]
    (index,) = reported["indexes"]
    assert list(index) == [
        *("index", "index_type", "columns", "base_files", "covered", "coverage"),
        *("index_bytes", "shared_with", "due", "lag_instants", "lag_seconds", "partitions"),
        *("outdated", "newer", "skipped", "stored", "damaged", "unread"),
    ]
    assert index["partitions"][0] == {
        "partition": FIRST,
        "base_files": 1,
        "covered": 1,
    }
    assert reported["build"] == reported["builds"][0]
    assert list(reported["build"]) == [
        *("build", "state", "strategy", "started", "finished", "host", "pid", "due", "built"),
        *("failed", "left", "seconds", "stopped_by", "error", "cancel_requested", "progress"),
        "failures",
    ]
    assert reported["build"]["progress"]["rows_done"] == 20
    assert (reported["alerts"], reported["failing"]) == (["something"], [])
