"""Snapshots of real tables have the slices of Hudi's own view, with Spark's rows. For the histories
that each release writes see tests/versions."""

import pytest
from pyspark.sql import functions as F

from hudi_index_service.errors import TableFeatureUnsupported
from hudi_index_service.hudi import Snapshot, open_hudi_table
from tests.hudi_tables import (
    BUCKET_INDEX_NON_BLOCKING,
    IN_PROCESS_LOCK,
    NO_METADATA_TABLE,
    forget_commit,
    hudi_options,
    numbered_rows,
    run_compaction,
    write,
)


def test_files_of_an_unfinished_commit_are_ignored(spark, tmp_path, check_against_spark):
    options = hudi_options("t", partition_column="dt", **IN_PROCESS_LOCK)
    write(numbered_rows(spark, 0, 40), tmp_path, options)
    committed = check_against_spark(tmp_path)
    write(numbered_rows(spark, 0, 10, version=1), tmp_path, options)
    forget_commit(tmp_path)
    assert check_against_spark(tmp_path) == committed

    # The next write rolls the unfinished one back. Without its markers, its files remain.
    write(numbered_rows(spark, 5, 15, version=2), tmp_path, options)
    assert len(list(tmp_path.glob("2026-01-01/*.parquet"))) == 3
    check_against_spark(tmp_path)


def test_change_data_capture_files_are_ignored(spark, tmp_path, check_against_spark):
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        path = tmp_path / table_type
        options = hudi_options(
            "t", table_type, **NO_METADATA_TABLE, **{"hoodie.table.cdc.enabled": "true"}
        )
        for version in range(3):
            write(numbered_rows(spark, version * 5, 20 + version * 5, version), path, options)
        assert list(path.glob(".*.cdc"))
        snapshot = check_against_spark(path)
        assert not [f for s in snapshot.slices for f in s.log_files if f.endswith(".cdc")]


def test_virtual_keys(spark, tmp_path, check_against_spark):
    virtual = {"hoodie.populate.meta.fields": "false"}
    options = hudi_options("t", "MERGE_ON_READ", **virtual, **NO_METADATA_TABLE)
    write(numbered_rows(spark, 0, 40), tmp_path, options)
    write(numbered_rows(spark, 0, 10, version=1), tmp_path, options)
    check_against_spark(tmp_path)
    assert open_hudi_table(tmp_path).schema().names[0] == "id"


def test_keys_generated_by_hudi(spark, tmp_path, check_against_spark):
    options = hudi_options("t", partition_column="dt", **NO_METADATA_TABLE)
    del options["hoodie.datasource.write.recordkey.field"]
    write(numbered_rows(spark, 0, 20), tmp_path, options, "insert")
    check_against_spark(tmp_path)
    assert open_hudi_table(tmp_path).record_key_columns() == ()


def test_partitions_with_the_same_file_id(spark, tmp_path, check_against_spark):
    options = hudi_options("t", "MERGE_ON_READ", partition_column="dt", **BUCKET_INDEX_NON_BLOCKING)
    write(numbered_rows(spark, 0, 40), tmp_path, options)
    with pytest.raises(TableFeatureUnsupported, match=r"2026-01-01/0{8}-.* no base file yet"):
        open_hudi_table(tmp_path).snapshot()

    run_compaction(spark, tmp_path)
    compacted = check_against_spark(tmp_path)
    assert [(s.partition, s.file_id) for s in compacted.slices] == [
        ("2026-01-01", "00000000-0000-0000-0000-000000000000-0"),
        ("2026-01-02", "00000000-0000-0000-0000-000000000000-0"),
    ]
    assert len({b.instant for b in compacted.base_files()}) == 1

    write(numbered_rows(spark, 0, 40, version=1).where("dt = '2026-01-02'"), tmp_path, options)
    assert [len(s.log_files) for s in check_against_spark(tmp_path).slices] == [0, 1]

    # A partition with log files only.
    write(numbered_rows(spark, 40, 50).withColumn("dt", F.lit("2026-02-01")), tmp_path, options)
    with pytest.raises(TableFeatureUnsupported, match=r"2026-02-01/.* no base file yet"):
        open_hudi_table(tmp_path).snapshot()


def test_earlier_instant_with_cleaned_files_is_refused(spark, tmp_path):
    options = hudi_options("t", **{"hoodie.clean.commits.retained": "1"}, **NO_METADATA_TABLE)
    for version in range(4):
        write(numbered_rows(spark, 0, 10, version), tmp_path, options)
    table = open_hudi_table(tmp_path)
    first = table.completed_instants()[0]
    assert table.snapshot().slices
    with pytest.raises(TableFeatureUnsupported, match="have been cleaned"):
        table.snapshot(first.requested)


def test_snapshot_is_cached_while_the_timeline_is_unchanged(spark, tmp_path):
    options = hudi_options("t", partition_column="dt", **NO_METADATA_TABLE)
    write(numbered_rows(spark, 0, 20), tmp_path, options)
    table = open_hudi_table(tmp_path)
    first, version = table.snapshot(), table.timeline().version

    requests = table.storage.io.requests
    assert table.snapshot() is first
    assert table.snapshot(first.instant) is first
    assert table.storage.io.requests == requests + 2  # one listing of the timeline each

    write(numbered_rows(spark, 0, 10, version=1), tmp_path, options)
    assert table.timeline().version != version
    second = table.snapshot()
    assert second.instant > first.instant
    assert {b.path for b in second.base_files()}.isdisjoint(b.path for b in first.base_files())


def test_table_before_its_first_commit(spark, tmp_path):
    spark.sql(
        f"create table fresh (id int, price double) using hudi "
        f"tblproperties (primaryKey = 'id') location '{tmp_path}'"
    )
    spark.sql("drop table fresh")
    table = open_hudi_table(tmp_path)
    assert table.snapshot() == Snapshot("", schema=table.schema())
    assert table.completed_instants() == ()
    assert table.schema().names[-2:] == ["id", "price"]
