"""Tables whose base files have many pages, to count and choose pages while reading."""

from tests.golden.recipe import Writing, recipe
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, write

PAGE_SIZE = "hoodie.parquet.page.size"

_LONG_TEXT = "repeat(substr(md5(cast(id AS string)), 1, 4), 32)"
"""Long to read, small to store."""


@recipe
def zips_in_two_partitions(table: Writing) -> None:
    """20,000 rows in two base files, one in each partition; `zip` determines `city`."""
    rows = table.spark.range(0, 20_000, 1, 1).selectExpr(
        "cast(id AS string) AS id",
        "concat('zip', id % 100) AS zip",
        "concat('city', id % 100) AS city",
        "cast(id AS int) AS amount",
        f"{_LONG_TEXT} AS text",
        "cast(0 AS bigint) AS ts",
        "concat('p', id % 2) AS part",
    )
    options = hudi_options("t", partition_column="part", **NO_METADATA_TABLE)
    write(rows, table.path, options, "bulk_insert")
    table.keep()


@recipe
def colours_in_two_partitions(table: Writing) -> None:
    """12,000 rows in two base files, one in each partition, in pages of about a hundred rows."""
    rows = table.spark.range(0, 12_000, 1, 1).selectExpr(
        "cast(id AS string) AS id",
        "repeat(substr(md5(cast(id AS string)), 1, 8), 4) AS msg",
        "if(id % 8 < 2, 'red', 'blue') AS colour",
        "cast(id % 1000 AS int) AS size",
        "1L AS ts",
        "concat('p', id % 2) AS part",
    )
    options = hudi_options("batches", partition_column="part", **NO_METADATA_TABLE)
    write(rows, table.path, options | {PAGE_SIZE: "512"}, "bulk_insert")
    table.keep()


@recipe
def runs_in_row_groups(table: Writing) -> None:
    """30,000 rows in one base file with several row groups of several pages; `kind` is in runs of
    300 rows."""
    rows = table.spark.range(0, 30_000, 1, 1).selectExpr(
        "cast(id AS string) AS id",
        "concat('name', id) AS name",
        "concat('kind', cast(id AS int) div 300) AS kind",
        "md5(cast(id AS string)) AS text",
        "pmod(id * 7919, 30000) AS number",
        "cast(0 AS bigint) AS ts",
    )
    sizes = {PAGE_SIZE: "4096", "hoodie.parquet.block.size": "300000"}
    options = hudi_options("t", **NO_METADATA_TABLE)
    write(rows, table.path, options | sizes, "bulk_insert")
    table.keep()


@recipe
def names_of_cities(table: Writing) -> None:
    """10,000 rows in one base file: unique names, a thousand cities, long texts."""
    rows = table.spark.range(0, 10_000, 1, 1).selectExpr(
        "cast(id AS string) AS id",
        "concat('name', id) AS name",
        "concat('city', id % 1000) AS city",
        "repeat(sha2(cast(id % 400 AS string), 512), 4) AS text",
        "cast(id AS int) AS amount",
        "map('a', id) AS odd",
        "cast(0 AS bigint) AS ts",
    )
    write(rows, table.path, hudi_options("t", **NO_METADATA_TABLE), "bulk_insert")
    table.keep()


@recipe
def names_in_small_pages(table: Writing) -> None:
    """60,000 rows in one base file with pages of 8 KiB; each name occurs in three rows."""
    rows = table.spark.range(0, 60_000, 1, 1).selectExpr(
        "cast(id AS string) AS id",
        "concat('name', id % 20000) AS name",
        "repeat(substr(md5(cast(id AS string)), 1, 2), 4) AS text",
        "id AS amount",
        "cast(id % 4 AS string) AS kind",
        "cast(0 AS bigint) AS ts",
    )
    options = hudi_options("t", **NO_METADATA_TABLE)
    write(rows, table.path, options | {PAGE_SIZE: "8192"}, "bulk_insert")
    table.keep()


@recipe
def hundred_base_files(table: Writing) -> None:
    """A hundred partitions of one base file each, with two rows: the amounts differ in each file,
    and the messages are the same in all."""
    rows = table.spark.range(0, 200, 1, 1).selectExpr(
        "cast(id AS string) AS id",
        "concat('Buying car ', id % 2) AS msg",
        "id AS amount",
        "cast(0 AS bigint) AS ts",
        "concat('p', lpad(cast(id AS int) div 2, 3, '0')) AS part",
    )
    options = hudi_options("t", partition_column="part", **NO_METADATA_TABLE)
    write(rows, table.path, options, "bulk_insert")
    table.keep()


@recipe
def three_pages_with_logs(table: Writing) -> None:
    """20,000 rows, merge on read: a base file of at least three pages in each of two partitions;
    the one with the odd ids has a log file."""
    options = hudi_options("remote", "MERGE_ON_READ", partition_column="dt")
    rows = numbered_rows(table.spark, 0, 20_000).coalesce(1)
    write(rows, table.path, options | {PAGE_SIZE: "20000"}, "bulk_insert")
    write(numbered_rows(table.spark, 51, 52, version=2), table.path, options)
    table.keep()
