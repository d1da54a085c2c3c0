"""Tables after Hudi's table services, step by step."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.golden.recipe import Writing, recipe
from tests.hudi_tables import (
    IN_PROCESS_LOCK,
    NO_METADATA_TABLE,
    hudi_options,
    numbered_rows,
    run_clustering,
    run_compaction,
    timeline_folder,
    write,
)

PERSON = "Zebediah Quuxley"
ACCOUNT = 8_123_456_789_012_345_678
"""The person's account: the highest of all, so that the manifest contains it too."""

REGIONS = ("New York", "a/b", "50% off")
OF_REGIONS = [
    "amount between 30 and 60",
    "region = 'a/b'",
    "region = '50% off' and amount < 90",
]
HIVE_STYLE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}


@recipe
def messages_of_users(table: Writing) -> None:
    """300 rows of ten senders; then clustered."""
    rows = table.spark.range(300).selectExpr(
        "cast(id AS string) AS id", "id AS ts", "concat('User', id % 10) AS sender"
    )
    write(rows, table.path, hudi_options("messages", **NO_METADATA_TABLE))
    table.keep("written")
    run_clustering(table.spark, table.path)
    table.keep("clustered")


@recipe
def seven_partitions(table: Writing) -> None:
    """Partitions ``0`` to ``6`` by id modulo 7; 5 and 6 are written later."""
    options = hudi_options("days", partition_column="digit", **NO_METADATA_TABLE)
    rows = numbered_rows(table.spark, 0, 110).selectExpr(
        "*", "cast(cast(id as int) % 7 as string) digit"
    )
    rows = rows.coalesce(1).cache()
    write(rows.where("digit < '5'"), table.path, options, "bulk_insert")
    write(rows.where("digit >= '5'"), table.path, options, "bulk_insert")
    table.keep()


@recipe
def regions_clustered(table: Writing) -> None:
    """Not partitioned: 60 rows; then clustered."""
    _regions_clustered(table, None, {})


@recipe
def regions_clustered_hive_style(table: Writing) -> None:
    """Partitioned by region and day, hive style and encoded: 60 rows; then clustered."""
    _regions_clustered(table, "region,dt", {**ENCODED, **HIVE_STYLE})


@recipe
def regions_compacted(table: Writing) -> None:
    """Merge on read, partitioned by region, encoded: 60 rows; then ids below 6 updated, and
    compacted."""
    extra = {**ENCODED, **NO_METADATA_TABLE}
    options = hudi_options("regions", "MERGE_ON_READ", partition_column="region", **extra)
    write(_regions(table.spark, 60).coalesce(1), table.path, options, "bulk_insert")
    table.keep("written")
    write(_regions(table.spark, 6, version=1), table.path, options)
    run_compaction(table.spark, table.path)
    table.keep("compacted", OF_REGIONS)


@recipe
def undone(table: Writing) -> None:
    """Copy on write: updated, clustered, overwritten, clustered again; then the last two undone."""
    spark, path = table.spark, table.path
    options = hudi_options("cow", **IN_PROCESS_LOCK)
    write(numbered_rows(spark, 0, 20).coalesce(1), path, options, "bulk_insert")
    table.keep("written")
    write(numbered_rows(spark, 5, 6, version=1), path, options)
    table.keep("updated")
    run_clustering(spark, path, "schedule")
    table.keep("clustering planned")
    run_clustering(spark, path, "execute")
    table.keep("clustered")
    clustered = max(file.name[:17] for file in timeline_folder(path).glob("*.replacecommit"))
    spark.sql(f"call create_savepoint(path => '{path}', commit_time => '{clustered}')").collect()
    write(numbered_rows(spark, 0, 30).coalesce(1), path, options, "insert_overwrite_table")
    table.keep("overwritten")
    run_clustering(spark, path)
    table.keep("clustered again")
    spark.sql(
        f"call rollback_to_savepoint(path => '{path}', instant_time => '{clustered}')"
    ).collect()
    table.keep("undone")


@recipe
def inserted_and_compacted(table: Writing) -> None:
    """Merge on read: a base file, a log file, a second base file by a delta commit; compacted."""
    spark, path = table.spark, table.path
    options = hudi_options("mor", "MERGE_ON_READ", **NO_METADATA_TABLE)
    write(numbered_rows(spark, 0, 20).coalesce(1), path, options, "bulk_insert")
    table.keep("written")
    write(numbered_rows(spark, 0, 2, version=1), path, options)
    table.keep("updated")
    write(numbered_rows(spark, 20, 25).coalesce(1), path, options, "insert")
    table.keep("inserted")
    run_compaction(spark, path, "schedule")
    table.keep("compaction planned")
    run_compaction(spark, path, "run")
    table.keep("compacted")


@recipe
def person_erased(table: Writing) -> None:
    """Copy on write: 300 people, one of them deleted; clustered; then cleaned by Hudi."""
    _person_erased(table, "COPY_ON_WRITE")


@recipe
def person_erased_with_logs(table: Writing) -> None:
    """The same as merge on read: compacted instead of clustered."""
    _person_erased(table, "MERGE_ON_READ")


def _regions(spark: SparkSession, stop: int, version: int = 0) -> DataFrame:
    names = F.array(*map(F.lit, REGIONS))
    region = names[F.col("id").cast("int") % len(REGIONS)]
    return numbered_rows(spark, 0, stop, version).withColumn("region", region)


def _regions_clustered(table: Writing, columns: str | None, extra: dict[str, str]) -> None:
    options = hudi_options("regions", partition_column=columns, **extra, **NO_METADATA_TABLE)
    write(_regions(table.spark, 60).coalesce(1), table.path, options, "bulk_insert")
    table.keep("written")
    run_clustering(table.spark, table.path)
    table.keep("clustered", OF_REGIONS)


def _people(spark: SparkSession, start: int, stop: int) -> DataFrame:
    """Rows of many people; row 7 is the person to be erased."""
    return spark.range(start, stop).selectExpr(
        "cast(id AS string) AS id",
        f"if(id = 7, '{PERSON}', concat('Person ', id)) AS name",
        f"if(id = 7, 'Mail from {PERSON}, again', 'Mail') AS msg",
        f"if(id = 7, {ACCOUNT}L, id) AS account",
        "0L AS ts",
    )


def _person_erased(table: Writing, table_type: str) -> None:
    spark, path = table.spark, table.path
    by_hand = {**NO_METADATA_TABLE, "hoodie.clean.automatic": "false"}
    options = hudi_options("people", table_type, **by_hand)
    write(_people(spark, 0, 300).coalesce(1), path, options, "bulk_insert")
    table.keep("written")
    write(_people(spark, 7, 8), path, options, "delete")
    if table_type == "MERGE_ON_READ":
        run_compaction(spark, path)
    else:
        run_clustering(spark, path)
    table.keep("deleted")
    spark.sql(f"create table people using hudi location '{path}'")
    spark.sql(
        "call run_clean(table => 'people', clean_policy => 'KEEP_LATEST_FILE_VERSIONS', "
        "file_versions_retained => 1)"
    ).collect()
    spark.sql("drop table people")
    table.keep("cleaned")
