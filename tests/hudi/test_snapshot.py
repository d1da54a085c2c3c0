"""Snapshots of real tables have the slices of Hudi's own view, with Spark's rows. For the histories
that each release writes see tests/versions."""

import pytest
from pyspark.sql import functions as F

from hudi_index_service.errors import TableFeatureUnsupported
from hudi_index_service.hudi import ServiceKind, Snapshot, open_hudi_table
from tests.hudi_tables import (
    BUCKET_INDEX_NON_BLOCKING,
    IN_PROCESS_LOCK,
    NO_METADATA_TABLE,
    forget_commit,
    hudi_options,
    numbered_rows,
    run_clustering,
    run_compaction,
    write,
)

KEEP_SMALL_FILES = {"hoodie.parquet.small.file.limit": "0"}


def kinds(path):
    table = open_hudi_table(path)
    return [(i.action, table.service_kind(i)) for i in table.completed_instants()]


def test_partitioned_copy_on_write_with_clustering_and_update(spark, tmp_path, check_against_spark):
    options = hudi_options("t", partition_column="dt", **KEEP_SMALL_FILES)
    write(numbered_rows(spark, 0, 40), tmp_path, options, "insert")
    write(numbered_rows(spark, 40, 80), tmp_path, options, "insert")
    before = check_against_spark(tmp_path)
    assert len(before.slices) == 4

    run_clustering(spark, tmp_path, "schedule")
    assert check_against_spark(tmp_path).slices == before.slices  # nothing has been replaced yet

    run_clustering(spark, tmp_path, "execute")
    clustered = check_against_spark(tmp_path)
    assert len(clustered.slices) == 2
    assert {b.instant for b in clustered.base_files()} == {clustered.instant}

    write(numbered_rows(spark, 0, 10, version=2), tmp_path, options)
    updated = check_against_spark(tmp_path)
    assert [s.file_id for s in updated.slices] == [s.file_id for s in clustered.slices]
    assert kinds(tmp_path) == [
        ("commit", ServiceKind.NONE),
        ("commit", ServiceKind.NONE),
        ("replacecommit", ServiceKind.CLUSTERING),
        ("commit", ServiceKind.NONE),
    ]
    # At earlier instants too: before the clustering, the table has the source files.
    assert check_against_spark(tmp_path, before.instant).slices == before.slices
    assert check_against_spark(tmp_path, clustered.instant).slices == clustered.slices


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


@pytest.mark.parametrize("version", ["6", "9"])
def test_log_files_of_an_unfinished_delta_commit_are_ignored(
    spark, tmp_path, check_against_spark, version
):
    options = hudi_options(
        "t",
        "MERGE_ON_READ",
        **{"hoodie.write.table.version": version, "hoodie.write.auto.upgrade": "false"},
        # The metadata table would still contain the commit that is about to be removed.
        **NO_METADATA_TABLE,
        **IN_PROCESS_LOCK,
    )
    write(numbered_rows(spark, 0, 40), tmp_path, options)
    write(numbered_rows(spark, 0, 10, version=1), tmp_path, options)
    write(numbered_rows(spark, 5, 15, version=2), tmp_path, options)
    forget_commit(tmp_path)
    check_against_spark(tmp_path)
    write(numbered_rows(spark, 20, 25, version=3), tmp_path, options)
    check_against_spark(tmp_path)


@pytest.mark.parametrize("hive_style", ["false", "true"])
def test_encoded_partition_values(spark, tmp_path, check_against_spark, hive_style):
    options = hudi_options(
        "t",
        partition_column="dt",
        **NO_METADATA_TABLE,
        **{
            "hoodie.datasource.write.partitionpath.urlencode": "true",
            "hoodie.datasource.write.hive_style_partitioning": hive_style,
        },
    )
    rows = numbered_rows(spark, 0, 20)
    values = F.when(F.col("dt") == "2026-01-01", "a b/c=d%2F").otherwise("Zürich #?&")
    write(rows.withColumn("dt", values), tmp_path, options)
    prefix = "dt=" if hive_style == "true" else ""
    assert [s.partition for s in check_against_spark(tmp_path).slices][1].startswith(
        f"{prefix}a b%2Fc%3Dd"
    )


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
    with pytest.raises(TableFeatureUnsupported, match=r"2026-01-0\d/\.0{8}-.*\.log\.1"):
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

    # A partition with log files only: hudi-rs' slices silently omit its rows.
    write(numbered_rows(spark, 40, 50).withColumn("dt", F.lit("2026-02-01")), tmp_path, options)
    with pytest.raises(TableFeatureUnsupported, match=r"2026-02-01/.*\.log\.1.*no file slice"):
        open_hudi_table(tmp_path).snapshot()


def test_archived_instants_keep_their_files(spark, tmp_path, check_against_spark):
    options = hudi_options(
        "t",
        **KEEP_SMALL_FILES,
        **{
            # Archiving waits for the metadata table's compaction.
            **NO_METADATA_TABLE,
            "hoodie.keep.min.commits": "2",
            "hoodie.keep.max.commits": "3",
            "hoodie.clean.commits.retained": "1",
        },
    )
    for n in range(5):
        write(numbered_rows(spark, n * 10, n * 10 + 10, n), tmp_path, options, "insert")
    snapshot = check_against_spark(tmp_path)
    table = open_hudi_table(tmp_path)
    assert len(snapshot.slices) == 5
    assert len(table.completed_instants()) < 5
    with pytest.raises(TableFeatureUnsupported, match="before the active timeline"):
        table.snapshot(min(b.instant for b in snapshot.base_files()))


def test_earlier_instant_with_cleaned_files_is_refused(spark, tmp_path):
    options = hudi_options("t", **{"hoodie.clean.commits.retained": "1"}, **NO_METADATA_TABLE)
    for version in range(4):
        write(numbered_rows(spark, 0, 10, version), tmp_path, options)
    table = open_hudi_table(tmp_path)
    first = table.completed_instants()[0]
    assert table.snapshot().slices
    with pytest.raises(TableFeatureUnsupported, match="have been cleaned"):
        table.snapshot(first.requested)


def test_new_column_is_null_in_old_files_and_widened_column_is_cast(
    spark, tmp_path, check_against_spark
):
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        path = tmp_path / table_type
        options = hudi_options("t", table_type, **NO_METADATA_TABLE, **KEEP_SMALL_FILES)
        narrow = numbered_rows(spark, 0, 20).withColumn("amount", F.col("amount").cast("int"))
        write(narrow, path, options, "insert")
        extra = F.when(F.col("id") != "15", F.concat(F.lit("é"), F.col("id")))
        write(numbered_rows(spark, 10, 30, 1).withColumn("extra", extra), path, options)
        check_against_spark(path)


def test_snapshot_is_cached_while_the_timeline_is_unchanged(spark, tmp_path):
    options = hudi_options("t", partition_column="dt", **NO_METADATA_TABLE)
    write(numbered_rows(spark, 0, 20), tmp_path, options)
    table = open_hudi_table(tmp_path)
    first, version = table.snapshot(), table.timeline_version()

    requests = table.storage.io.requests
    assert table.snapshot() is first
    assert table.snapshot(first.instant) is first
    assert table.storage.io.requests == requests + 2  # one listing of the timeline each

    write(numbered_rows(spark, 0, 10, version=1), tmp_path, options)
    assert table.timeline_version() != version
    second = table.snapshot()
    assert second.instant > first.instant
    assert {b.path for b in second.base_files()}.isdisjoint(b.path for b in first.base_files())


def test_missing_base_file_is_named(spark, tmp_path):
    write(numbered_rows(spark, 0, 20), tmp_path, hudi_options("t", **NO_METADATA_TABLE))
    table = open_hudi_table(tmp_path)
    (file_slice,) = table.snapshot().slices
    (tmp_path / file_slice.base_file.path).unlink()
    with pytest.raises(FileNotFoundError, match=file_slice.file_id):
        list(table.read_slice(file_slice, ["id"]))


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
