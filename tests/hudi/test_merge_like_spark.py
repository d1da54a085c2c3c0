"""Slices with log files of every kind: merged as by Spark, or refused with the file's name."""

import shutil
from pathlib import Path

import pytest

from hudi_index_service import open_table
from hudi_index_service.errors import NeedsSpark
from hudi_index_service.hudi import open_hudi_table
from hudi_index_service.hudi.files.log_file import BlockType, HeaderKey, read_log_file
from hudi_index_service.hudi.spark import SparkHudiReader, collected
from hudi_index_service.storage.store import Storage
from tests.hudi.conftest import read_all
from tests.hudi.log_blocks import block
from tests.hudi_tables import (
    NO_METADATA_TABLE,
    forget_commit,
    hudi_options,
    numbered_rows,
    run_compaction,
    write,
)
from tests.same_rows import assert_same_rows

COLUMNS = ["_hoodie_record_key", "id", "msg", "amount", "ts", "dt"]
SCHEMA = "id string, msg string, amount long, ts long, dt string, _hoodie_is_deleted boolean"


def options(version="9", **extra):
    return hudi_options(
        "t",
        "MERGE_ON_READ",
        **NO_METADATA_TABLE,
        **{"hoodie.write.table.version": version, "hoodie.write.auto.upgrade": "false"},
        **extra,
    )


def rows(spark, *values, deleted=False):
    """Rows of (key, amount, ts)."""
    values_of_rows = [
        (key, "written", amount, ts, "2026-01-01", deleted) for key, amount, ts in values
    ]
    return spark.createDataFrame(values_of_rows, SCHEMA).coalesce(1)


def log_files(path: Path) -> list[Path]:
    return sorted(each for each in path.glob(".*.log.*") if each.suffix != ".crc")


def copy_with_log(source: Path, target: Path, number: int, data: bytes) -> Path:
    """A copy of the table with other bytes in one log file."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.crc"))
    log_files(target)[number].write_bytes(data)
    return target


def merged(path):
    table = open_hudi_table(path)
    return read_all(table, table.snapshot(), COLUMNS)


def assert_merges_like_spark(spark, path):
    assert_same_rows(merged(path), SparkHudiReader(spark, path).read(COLUMNS))


@pytest.fixture(scope="module", params=["6", "9"])
def logged(request, spark, tmp_path_factory):
    """20 rows, updated twice and partly deleted, each write in a log file of one block."""
    path = tmp_path_factory.mktemp(f"logged{request.param}")
    written = options(request.param)
    write(numbered_rows(spark, 0, 20).coalesce(1), path, written)
    write(numbered_rows(spark, 0, 5, version=1).coalesce(1), path, written)
    write(numbered_rows(spark, 3, 8, version=2).coalesce(1), path, written)
    write(numbered_rows(spark, 9, 11, version=3).coalesce(1), path, written, "delete")
    assert len(log_files(path)) == 3
    return path


@pytest.mark.parametrize("number", [0, 2])
@pytest.mark.parametrize("length", [0, 3, 14, 300, -1])
def test_log_file_truncated_within_a_block(spark, logged, tmp_path, number, length):
    data = log_files(logged)[number].read_bytes()
    cut = copy_with_log(logged, tmp_path / "cut", number, data[:length])
    assert merged(cut).num_rows == (18 if number == 0 else 20)
    assert_merges_like_spark(spark, cut)


def test_whole_block_before_a_truncated_one(spark, logged, tmp_path):
    data = log_files(logged)[0].read_bytes()
    assert_merges_like_spark(spark, copy_with_log(logged, tmp_path / "cut", 0, data + data[:200]))


def test_damaged_log_file_is_refused_by_name(spark, logged, tmp_path):
    data = log_files(logged)[0].read_bytes()
    damaged = {
        "ends_in_length": data[:8],
        "goes_on_behind": data[:200] + data,
        "header_of_many_entries": data[:22]
        + b"\xff" * 4
        + data[26:],  # this used to end the process
        "corrupted_block": block(BlockType.CORRUPTED) + data,
    }
    for name, changed in damaged.items():
        path = copy_with_log(logged, tmp_path / name, 0, changed)
        with pytest.raises(NeedsSpark, match=rf"Log file {log_files(path)[0].name} "):
            merged(path)
    path = tmp_path / "ends_in_length"
    answer = open_table(path, spark=spark).scan(columns=COLUMNS).to_arrow()
    assert_same_rows(answer, SparkHudiReader(spark, path).read(COLUMNS))


def test_rolled_back_blocks_are_skipped(spark, logged, tmp_path):
    """As releases before 1.0 write rollbacks, after the blocks that they roll back."""
    data = log_files(logged)[1].read_bytes()
    instant = open_hudi_table(logged).completed_instants()[2].requested
    header = {
        HeaderKey.INSTANT_TIME: b"20260101000000000",
        HeaderKey.TARGET_INSTANT_TIME: instant.encode(),
        HeaderKey.COMMAND_BLOCK_TYPE: b"0",
    }
    rolled_back = data + block(BlockType.COMMAND, header=header)
    path = copy_with_log(logged, tmp_path / "rolled_back", 1, rolled_back)
    assert merged(path).column("ts").to_pylist().count(2) == 0
    assert_merges_like_spark(spark, path)


def test_failed_write_and_its_rollback(spark, logged, tmp_path, check_against_spark):
    path = shutil.copytree(logged, tmp_path / "failed")
    version = "6" if "logged6" in str(logged) else "9"
    forget_commit(path)
    check_against_spark(path)
    write(rows(spark, ("1", 7, 7)), path, options(version))
    check_against_spark(path)


@pytest.fixture
def with_duplicates(spark, tmp_path):
    """Writes keys 0 to 9, some of them twice or three times, into one base file."""

    def written(**extra):
        once = [(str(number), number * 10, 5) for number in range(10)]
        again = [("0", 1, 5), ("1", 2, 7), ("2", 3, 3), ("3", 4, 5), ("4", 5, 7), ("0", 6, 6)]
        uncombined = {
            "hoodie.combine.before.insert": "false",
            "hoodie.bulkinsert.sort.mode": "NONE",
        }
        all_options = options(**extra)
        write(rows(spark, *once, *again), tmp_path, {**all_options, **uncombined}, "bulk_insert")
        assert_merges_like_spark(spark, tmp_path)
        return tmp_path, all_options

    return written


def test_duplicates_with_record_positions_are_left_to_spark(spark, with_duplicates):
    path, written = with_duplicates()
    write(rows(spark, ("0", 100, 6), ("1", 101, 6), ("2", 102, 6)), path, written)
    (base,) = path.glob("*.parquet")
    with pytest.raises(NeedsSpark, match=rf"{base.name} holds 6 rows whose record key") as refused:
        open_table(path).scan("amount >= 100").to_arrow()
    assert "spark=" in refused.value.remedy
    with pytest.raises(NeedsSpark):
        open_table(path).scan("amount >= 100").count()
    answer = open_table(path, spark=spark).scan("amount >= 100", columns=COLUMNS).to_arrow()
    expected = SparkHudiReader(spark, path).read(COLUMNS, "amount >= 100")
    assert_same_rows(answer, expected)
    assert expected.num_rows > 3
    in_tasks = open_table(path).scan("amount >= 100", columns=COLUMNS).to_spark(spark)
    assert_same_rows(collected(in_tasks), expected)
    run_compaction(spark, path)
    assert_merges_like_spark(spark, path)


def test_duplicates_without_record_positions_are_merged(spark, with_duplicates):
    path, written = with_duplicates(**{"hoodie.write.record.positions": "false"})
    write(rows(spark, ("0", 100, 6), ("1", 101, 6), ("2", 102, 6)), path, written)
    write(rows(spark, ("3", 103, 6), ("4", 104, 6), deleted=True), path, written)
    write(rows(spark, ("0", 105, 9), ("9", 106, 9)), path, written, "delete")
    assert_merges_like_spark(spark, path)


def test_duplicates_that_no_log_file_touches(spark, with_duplicates):
    path, written = with_duplicates(**{"hoodie.write.record.positions": "false"})
    write(rows(spark, ("9", 109, 6)), path, written)
    assert_merges_like_spark(spark, path)


@pytest.mark.parametrize(("ordering_column", "blocks"), [("ts", "avro"), (None, "parquet")])
def test_duplicates_within_a_log_file_are_merged(spark, tmp_path, ordering_column, blocks):
    written = hudi_options(
        "t",
        "MERGE_ON_READ",
        ordering_column=ordering_column,
        **NO_METADATA_TABLE,
        **{"hoodie.logfile.data.block.format": blocks},
    )
    write(rows(spark, ("1", 0, 5), ("2", 0, 5), ("3", 0, 5)), tmp_path, written)
    uncombined = {**written, "hoodie.combine.before.upsert": "false"}
    again = rows(spark, ("1", 1, 6), ("1", 2, 7), ("1", 3, 6), ("2", 1, 6), ("2", 2, 6))
    write(again.union(rows(spark, ("2", 3, 6), deleted=True)).coalesce(1), tmp_path, uncombined)
    assert_merges_like_spark(spark, tmp_path)


def test_blocks_of_a_log_compaction(spark, tmp_path):
    written = options(
        **{
            "hoodie.log.compaction.enable": "true",
            "hoodie.log.compaction.inline": "true",
            "hoodie.log.compaction.blocks.threshold": "2",
        }
    )
    write(rows(spark, *((str(number), 0, 5) for number in range(5))), tmp_path, written)
    for number in range(2):
        write(rows(spark, ("1", number, 6), (str(number), 9, 9)), tmp_path, written)
    joined = [
        found
        for path in log_files(tmp_path)
        for found in read_log_file(Storage(tmp_path), path.name, path.stat().st_size).blocks
        if HeaderKey.COMPACTED_BLOCK_TIMES in found.header
    ]
    assert len(joined) == 1
    assert_merges_like_spark(spark, tmp_path)


@pytest.mark.parametrize("version", ["6", "9"])
def test_duplicates_across_base_files(spark, tmp_path, version):
    written = options(version)
    for amount in (1, 2):
        some = rows(spark, *((str(number), amount, 5) for number in range(6)))
        write(some, tmp_path, written, "bulk_insert")
    assert len(list(tmp_path.glob("*.parquet"))) == 2
    write(rows(spark, ("0", 100, 6), ("1", 101, 4)), tmp_path, written)
    write(rows(spark, ("2", 102, 6), deleted=True), tmp_path, written)
    write(rows(spark, ("3", 103, 9)), tmp_path, written, "delete")
    assert log_files(tmp_path)
    assert_merges_like_spark(spark, tmp_path)
    forget_commit(tmp_path)
    assert_merges_like_spark(spark, tmp_path)
    write(rows(spark, ("4", 104, 9)), tmp_path, written)
    assert_merges_like_spark(spark, tmp_path)
