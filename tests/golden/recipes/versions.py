"""Merge-on-read tables in the table versions that Hudi 1.2.0 can still write, step by step."""

from tests.golden.recipe import Writing, recipe
from tests.hudi_tables import hudi_options, numbered_rows, run_compaction, write

PREDICATES = ["amount = 12", "amount > 40 AND msg = 'Buying car 3'", "NOT (amount < 90)", "ts = 1"]


@recipe
def version_6(table: Writing) -> None:
    """Table version 6, of Hudi 0.14 and 0.15."""
    _logged_and_compacted(table, "6")


@recipe
def version_8(table: Writing) -> None:
    """Table version 8, of Hudi 1.0."""
    _logged_and_compacted(table, "8")


@recipe
def version_9(table: Writing) -> None:
    """Table version 9, of Hudi 1.1 and 1.2."""
    _logged_and_compacted(table, "9")


def _logged_and_compacted(table: Writing, version: str) -> None:
    """Two partitions: written, one updated, compacted, the same one updated and with deletes."""
    spark, path = table.spark, table.path
    options = hudi_options(
        "t",
        "MERGE_ON_READ",
        partition_column="dt",
        **{"hoodie.write.table.version": version, "hoodie.write.auto.upgrade": "false"},
    )
    even = "dt = '2026-01-01'"
    write(numbered_rows(spark, 0, 40).coalesce(1), path, options, "bulk_insert")
    table.keep("written", PREDICATES)
    write(numbered_rows(spark, 0, 10, version=1).where(even), path, options)
    table.keep("logged", PREDICATES)
    run_compaction(spark, path)
    table.keep("compacted", PREDICATES)
    write(numbered_rows(spark, 10, 20, version=2).where(even), path, options)
    write(numbered_rows(spark, 0, 4, version=3).where(even), path, options, "delete")
    table.keep("logged again", PREDICATES)
