"""Tables of numbered rows (`numbered_rows`) in the states that builds and cleaning encounter."""

from tests.faults.invariants import QUERIES
from tests.golden.recipe import Writing, recipe
from tests.hudi_tables import (
    NO_METADATA_TABLE,
    hudi_options,
    numbered_rows,
    run_clustering,
    run_compaction,
    write,
    write_four_base_files,
)


@recipe
def clustered_then_upserted(table: Writing) -> None:
    """Two partitions, clustered; then the even ids' partition rewritten by a plain upsert."""
    spark, path = table.spark, table.path
    options = hudi_options("cow", partition_column="dt")
    write(numbered_rows(spark, 0, 100), path, options, "bulk_insert", mode="overwrite")
    table.keep("written")
    run_clustering(spark, path)
    table.keep("clustered")
    write(numbered_rows(spark, 0, 100, version=1).where("amount % 2 = 1"), path, options)
    table.keep("upserted")


@recipe
def compacted_then_updated(table: Writing) -> None:
    """Merge on read, not partitioned: a base file, a log file, compacted; then another log file."""
    spark, path = table.spark, table.path
    options = hudi_options("mor", "MERGE_ON_READ")
    one_file = numbered_rows(spark, 0, 100).coalesce(1)
    write(one_file, path, options, "bulk_insert", mode="overwrite")
    table.keep("written")
    write(numbered_rows(spark, 0, 10, version=1), path, options)
    run_compaction(spark, path)
    table.keep("compacted")
    write(numbered_rows(spark, 90, 100, version=2), path, options)
    table.keep("updated")


@recipe
def cleaned_and_archived(table: Writing) -> None:
    """Two partitions, clustered; then five upserts to the odd ids' partition, after which Hudi has
    cleaned its first base files and archived the first instants."""
    spark, path = table.spark, table.path
    options = hudi_options(
        "t",
        partition_column="dt",
        **{
            "hoodie.clean.commits.retained": "1",
            "hoodie.keep.min.commits": "2",
            "hoodie.keep.max.commits": "3",
        },
    )
    write(numbered_rows(spark, 0, 100), path, options, "bulk_insert", mode="overwrite")
    run_clustering(spark, path)
    table.keep("clustered")
    for version in range(1, 6):
        rows = numbered_rows(spark, 0, 100, version=version).where("dt = '2026-01-02'")
        write(rows, path, options)
    table.keep("cleaned")


@recipe
def sixty_rows(table: Writing) -> None:
    """60 rows in two base files, one in each partition; clustered; then the partition 2026-01-01
    rewritten by an upsert."""
    spark, path = table.spark, table.path
    options = hudi_options("plain", partition_column="dt", **NO_METADATA_TABLE)
    write(numbered_rows(spark, 0, 60).coalesce(1), path, options, "bulk_insert", mode="overwrite")
    table.keep("written")
    run_clustering(spark, path)
    even = numbered_rows(spark, 0, 60, version=1).where("dt = '2026-01-01'")
    write(even, path, options)
    table.keep("upserted")


@recipe
def half_compacted(table: Writing) -> None:
    """Merge on read, a base file in each of two partitions; then the even ids' partition compacted;
    then a log file for the other partition's base file."""
    spark, path = table.spark, table.path
    options = hudi_options("status", "MERGE_ON_READ", partition_column="dt", **NO_METADATA_TABLE)
    write(numbered_rows(spark, 0, 40).coalesce(1), path, options, "bulk_insert", mode="overwrite")
    table.keep("written")
    write(numbered_rows(spark, 0, 40, version=1).where("id = '2'"), path, options)
    run_compaction(spark, path)
    write(numbered_rows(spark, 0, 40, version=2).where("id = '3'"), path, options)
    table.keep("updated")


@recipe
def rewritten_three_times(table: Writing) -> None:
    """Two partitions, clustered; then the odd ids' partition rewritten three times, after which
    Hudi has cleaned its clustered base file."""
    spark, path = table.spark, table.path
    options = hudi_options(
        "t", partition_column="dt", **{"hoodie.clean.commits.retained": "1"}, **NO_METADATA_TABLE
    )
    write(numbered_rows(spark, 0, 100), path, options, "bulk_insert", mode="overwrite")
    table.keep("written", QUERIES)
    run_clustering(spark, path)
    table.keep("clustered", QUERIES)
    for version in (1, 2, 3):
        odd = numbered_rows(spark, 0, 100, version=version).where("dt = '2026-01-02'")
        write(odd, path, options)
        table.keep(f"rewritten {version}", QUERIES)


@recipe
def four_base_files(table: Writing) -> None:
    """2,000 rows in two partitions of two base files each."""
    write_four_base_files(table.spark, table.path, 2000)
    table.keep()


@recipe
def two_partitions(table: Writing) -> None:
    """20 rows in two base files, one in each partition; then clustered."""
    options = hudi_options("small", partition_column="dt", **NO_METADATA_TABLE)
    write(numbered_rows(table.spark, 0, 20).coalesce(1), table.path, options, "bulk_insert")
    table.keep("written")
    run_clustering(table.spark, table.path)
    table.keep("clustered")


@recipe
def two_hundred_rows(table: Writing) -> None:
    """200 rows, not partitioned; then clustered."""
    write(numbered_rows(table.spark, 0, 200), table.path, hudi_options("cli"), "bulk_insert")
    table.keep("written")
    run_clustering(table.spark, table.path)
    table.keep("clustered")
