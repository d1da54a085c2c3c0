"""Time travel and read-optimized queries return Spark's rows and schema."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from pyspark.sql import DataFrame, SparkSession

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.errors import (
    ConfigInvalid,
    NeedsSpark,
    SnapshotUnavailable,
    StorageFailed,
    TableFeatureUnsupported,
)
from hudi_index_service.hudi.spark import SparkHudiReader, collected
from hudi_index_service.hudi.timeline import instant_of
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.scan import Scan
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
from tests.indexed import indexed
from tests.same_rows import assert_same_rows

PREDICATES = ("amount = 12", "amount > 40 AND msg = 'Buying car 3'", "NOT (amount < 90)")


@dataclass(frozen=True)
class Travelled:
    """A table, and the instants of its writes."""

    table: IndexedTable
    instants: Sequence[str]
    spark: SparkSession

    def assert_sparks_answers(self, **wanted: str) -> Scan:
        """Compares rows, schema and counts for each predicate, which Spark evaluates all at once,
        with the index and without; returns the last scan."""
        reader = SparkHudiReader(self.spark, self.table.uri, **wanted)
        rows = reader.frame(reader.schema().names)
        answers = collected(rows.selectExpr("*", *(f"{each} AS `{each}`" for each in PREDICATES)))
        for where in (None, *PREDICATES):
            matching = answers if where is None else answers.filter(answers[where])
            expected = matching.select(rows.columns)
            for use_index in ("never", "auto"):
                scan = self.table.scan(where, use_index=use_index, **wanted)
                found = scan.to_arrow()
                assert found.schema.types == expected.schema.types
                assert_same_rows(found, expected)
                assert scan.count() == expected.num_rows
        return scan


def completed(table: IndexedTable) -> list[str]:
    return [instant.requested for instant in table.hudi_table.completed_instants()]


def rows(
    spark: SparkSession, start: int, stop: int, version: int = 0, narrow: bool = False
) -> DataFrame:
    """Numbered rows: in version 0 with an int as amount if `narrow`, in later versions with one
    more column."""
    some = numbered_rows(spark, start, stop, version)
    if version == 0:
        return some.withColumn("amount", some["amount"].cast("int")) if narrow else some
    return some.selectExpr("*", "if(ts < 0, null, amount + 3000000000) AS more")


@pytest.fixture(scope="module")
def copy_on_write(spark, tmp_path_factory) -> Travelled:
    """Written, clustered, upserted with another schema; one partition overwritten."""
    path = tmp_path_factory.mktemp("cow") / "table"
    options = hudi_options("t", partition_column="dt", **NO_METADATA_TABLE)
    first = rows(spark, 0, 40, narrow=True).coalesce(1)
    write(first, path, options, "bulk_insert")
    table = indexed(path, ["amount", "msg"], name="by_amount")
    run_clustering(spark, path)
    table.build(strategy="all").raise_for_failures()
    write(rows(spark, 0, 10, version=1), path, options)
    table.build(strategy="all").raise_for_failures()
    write(
        rows(spark, 50, 60, version=2).where("dt = '2026-01-01'"), path, options, "insert_overwrite"
    )
    return Travelled(table, completed(table), spark)


@pytest.fixture(scope="module")
def merge_on_read(spark, tmp_path_factory) -> Callable[[str], Travelled]:
    """By table version: written, updated in one partition, compacted, updated with another schema.
    Everything is indexed at every step."""
    made: dict[str, Travelled] = {}

    def make(version):
        if version not in made:
            path = tmp_path_factory.mktemp(f"mor{version}") / "table"
            options = hudi_options(
                "t",
                "MERGE_ON_READ",
                partition_column="dt",
                **NO_METADATA_TABLE,
                **{"hoodie.write.table.version": version, "hoodie.write.auto.upgrade": "false"},
            )
            write(rows(spark, 0, 40).coalesce(1), path, options, "bulk_insert")
            table = indexed(path, ["amount", "msg"], name="by_amount")
            write(rows(spark, 4, 8).where("id % 2 = 0"), path, options)
            write(rows(spark, 8, 12).where("id % 2 = 0"), path, options, "delete")
            run_compaction(spark, path)
            table.build(strategy="all").raise_for_failures()
            write(rows(spark, 12, 30, version=1).where("id % 2 = 0"), path, options)
            made[version] = Travelled(table, completed(table), spark)
        return made[version]

    return make


def test_a_copy_on_write_table_at_each_of_its_instants(copy_on_write):
    assert len(copy_on_write.instants) == 4
    schemas, accesses = [], []
    for instant in copy_on_write.instants:
        scan = copy_on_write.assert_sparks_answers(as_of=instant)
        plan = scan.explain().plan
        assert plan.snapshot.instant == instant
        schemas.append(str(plan.snapshot.schema.field("amount").type))
        accesses.append({each.access for each in plan.slices})
    assert accesses[:3] == [{Access.INDEX}] * 3, "the files of that time have entries"
    assert Access.SCAN in accesses[3], "not built yet"
    assert schemas == ["int32", "int32", "int64", "int64"]
    copy_on_write.assert_sparks_answers()
    copy_on_write.assert_sparks_answers(query_type="read_optimized")  # the same


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_merge_on_read_table_at_each_of_its_instants(merge_on_read, version):
    travelled = merge_on_read(version)
    counts = []
    for instant in travelled.instants:
        plan = travelled.assert_sparks_answers(as_of=instant).explain().plan
        with_logs = sum(bool(each.file_slice.log_files) for each in plan.slices)
        counts.append((plan.count(Access.INDEX), with_logs))
    # In version 6, only the blocks in a log file show whether it already existed.
    at_once = (2, 1) if version == "6" else (2, 0)
    assert counts == [at_once, (2, 1), (2, 1), at_once, (2, 1)]


@pytest.mark.parametrize("version", ["6", "9"])
def test_read_optimized_reads_base_files_alone(merge_on_read, version):
    travelled = merge_on_read(version)
    plan = travelled.assert_sparks_answers(query_type="read_optimized").explain().plan
    assert plan.count(Access.INDEX) == len(plan.slices) == 2, "covered by their entries"
    for instant in travelled.instants:
        travelled.assert_sparks_answers(as_of=instant, query_type="read_optimized")
    both = [
        travelled.table.scan("more IS NOT NULL", query_type=kind).count()
        for kind in ("snapshot", "read_optimized")
    ]
    assert both == [9, 0]
    ids = travelled.table.scan("amount = 12", query_type="read_optimized").row_ids()
    assert sum(map(len, ids.values())) == 1


def test_log_only_file_groups_are_not_in_read_optimized_queries(spark, tmp_path):
    options = hudi_options("t", "MERGE_ON_READ", partition_column="dt", **BUCKET_INDEX_NON_BLOCKING)
    write(numbered_rows(spark, 0, 20).where("id % 2 = 0"), tmp_path, options)
    run_compaction(spark, tmp_path)
    write(numbered_rows(spark, 0, 30, version=1), tmp_path, options)
    table = open_table(tmp_path)
    table.create_index("by_amount", ["amount"])
    with pytest.raises(TableFeatureUnsupported):
        table.scan("amount >= 0").count()
    by_spark = SparkHudiReader(spark, tmp_path, query_type="read_optimized")
    scan = table.scan("amount >= 0", query_type="read_optimized")
    assert scan.count() == by_spark.count("amount >= 0") == 10


def test_as_of_times_are_written_as_for_spark(copy_on_write):
    first, second, *_ = copy_on_write.instants
    day, time, millis = first[:8], first[8:14], first[14:]
    dashed = f"{day[:4]}-{day[4:6]}-{day[6:]}"
    colons = f"{time[:2]}:{time[2:4]}:{time[4:]}"
    spelled = {
        first: first,
        first[:14]: first[:14],
        f"{dashed} {colons}.{millis}": first,
        f"{dashed} {colons}": f"{first[:14]}999",
        dashed: f"{day}000000000",
    }
    for text, meant in spelled.items():
        assert instant_of(text) == meant
    between = f"{dashed} {colons}.{millis}"
    spark = SparkHudiReader(copy_on_write.spark, copy_on_write.table.uri, as_of=between)
    assert copy_on_write.table.scan(as_of=between).count() == spark.count() == 40
    assert second > first
    for wrong in ("", "yesterday", "2026-13-01", "2026-01-01 25:00:00", "2026010110111", "2026"):
        with pytest.raises(ConfigInvalid, match="is not a time"):
            copy_on_write.table.scan(as_of=wrong)
    with pytest.raises(ConfigInvalid, match="query_type"):
        copy_on_write.table.scan(query_type="incremental")


def test_a_time_before_the_first_instant_is_refused(copy_on_write):
    with pytest.raises(TableFeatureUnsupported, match="before the active timeline"):
        copy_on_write.table.scan("amount = 12", as_of="2001-01-01")


def test_a_time_after_a_write_in_flight_is_refused(spark, tmp_path):
    options = hudi_options("t", **NO_METADATA_TABLE, **IN_PROCESS_LOCK)
    write(numbered_rows(spark, 0, 20), tmp_path, options)
    write(numbered_rows(spark, 5, 25, version=1), tmp_path, options)
    before = completed(open_table(tmp_path))[0]
    later = "2099-01-01"
    forget_commit(tmp_path)
    table = open_table(tmp_path)
    assert table.scan("amount = 12", as_of=before).count() == 1
    assert table.scan("amount = 12").count() == 1
    with pytest.raises(SnapshotUnavailable, match="in flight"):
        table.scan("amount = 12", as_of=later).count()
    with pytest.raises(StorageFailed):
        SparkHudiReader(spark, tmp_path, as_of=instant_of(later)).count()


def test_spark_reads_as_of_the_same_instant(spark, tmp_path):
    """A partition whose value Spark shows differently needs Spark."""
    options = hudi_options("t", partition_column="dt", **NO_METADATA_TABLE)
    odd = numbered_rows(spark, 0, 20).selectExpr("id", "msg", "amount", "ts", "'p=1' AS dt")
    write(odd, tmp_path, options)
    first = completed(open_table(tmp_path))[0]
    write(odd.withColumn("amount", odd["amount"] + 1000), tmp_path, options)
    table = open_table(tmp_path, spark=spark)
    then, now = table.scan("amount < 1000", as_of=first), table.scan("amount < 1000")
    assert then.explain().reader == now.explain().reader == "spark"
    assert (then.count(), now.count()) == (20, 0)
    assert then.to_arrow().num_rows == sum(b.num_rows for b in then.to_batches()) == 20
    assert then.exists()


def test_log_files_older_than_a_widened_column_are_right_or_need_spark(spark, tmp_path):
    options = hudi_options("t", "MERGE_ON_READ", **NO_METADATA_TABLE)
    write(rows(spark, 0, 20, narrow=True).coalesce(1), tmp_path, options, "bulk_insert")
    write(rows(spark, 0, 10, narrow=True), tmp_path, options)
    write(rows(spark, 5, 15, version=1), tmp_path, options)
    table, with_spark = open_table(tmp_path), open_table(tmp_path, spark=spark)
    refused: dict[str, NeedsSpark] = {}
    for instant in completed(table):
        reader = SparkHudiReader(spark, tmp_path, as_of=instant)
        expected = reader.read(reader.schema().names, "amount > 14")
        try:
            assert_same_rows(table.scan("amount > 14", as_of=instant).to_arrow(), expected)
        except NeedsSpark as error:
            refused[instant] = error
        assert_same_rows(with_spark.scan("amount > 14", as_of=instant).to_arrow(), expected)
    # hudi-rs merges log files in the latest schema, not the one they were written in.
    assert list(refused) == completed(table)[1:]
    for instant, error in refused.items():
        assert "spark=" in error.remedy
        explained = with_spark.scan("amount > 14", as_of=instant).explain(analyze=True)
        assert explained.reader == "spark"
