"""Tables after Hudi's table services, step by step."""

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.golden.recipe import (
    Recipe,
    Step,
    Writing,
    cluster,
    compact,
    delete,
    insert,
    numbers,
    put,
    upsert,
)
from tests.hudi_tables import (
    IN_PROCESS_LOCK,
    NO_METADATA_TABLE,
    hudi_options,
    numbered_rows,
    timeline_folder,
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


def _regions(spark: SparkSession, stop: int, version: int = 0) -> DataFrame:
    names = F.array(*map(F.lit, REGIONS))
    region = names[F.col("id").cast("int") % len(REGIONS)]
    return numbered_rows(spark, 0, stop, version).withColumn("region", region)


def _people(spark: SparkSession, start: int, stop: int) -> DataFrame:
    """Rows of many people; row 7 is the person to be erased."""
    return spark.range(start, stop).selectExpr(
        "cast(id AS string) AS id",
        f"if(id = 7, '{PERSON}', concat('Person ', id)) AS name",
        f"if(id = 7, 'Mail from {PERSON}, again', 'Mail') AS msg",
        f"if(id = 7, {ACCOUNT}L, id) AS account",
        "0L AS ts",
    )


# 300 rows of ten senders; then clustered.
_SENT = ("cast(id AS string) AS id", "id AS ts", "concat('User', id % 10) AS sender")
messages_of_users = Recipe(
    hudi_options("messages", **NO_METADATA_TABLE),
    upsert(numbers, 300, *_SENT, slices=None, keep="written"),
    cluster(keep="clustered"),
)


def _digits(spark: SparkSession) -> DataFrame:
    rows = numbered_rows(spark, 0, 110)
    return rows.selectExpr("*", "cast(cast(id as int) % 7 as string) digit").coalesce(1).cache()


# Partitions ``0`` to ``6`` by id modulo 7; 5 and 6 are written later.
seven_partitions = Recipe(
    hudi_options("days", partition_column="digit", **NO_METADATA_TABLE),
    put(_digits, where="digit < '5'"),
    put(_digits, where="digit >= '5'"),
)


def _regions_clustered(columns: str | None, **extra: str) -> Recipe:
    """60 rows; then clustered."""
    return Recipe(
        hudi_options("regions", partition_column=columns, **extra, **NO_METADATA_TABLE),
        put(_regions, 60, files=1, keep="written"),
        cluster(keep="clustered", answers=OF_REGIONS),
    )


regions_clustered = _regions_clustered(None)
regions_clustered_hive_style = _regions_clustered("region,dt", **ENCODED, **HIVE_STYLE)

# Merge on read, partitioned by region, encoded: 60 rows; then ids below 6 updated, and compacted.
_BY_REGION = {"partition_column": "region", **ENCODED, **NO_METADATA_TABLE}
regions_compacted = Recipe(
    hudi_options("regions", "MERGE_ON_READ", **_BY_REGION),
    put(_regions, 60, files=1, keep="written"),
    upsert(_regions, 6, version=1),
    compact(keep="compacted", answers=OF_REGIONS),
)


def _call(procedure: str) -> Step:
    """One of Hudi's procedures, of the table or its first clustering."""

    def step(table: Writing) -> None:
        completed = timeline_folder(table.path).glob("*.replacecommit")
        clustered = min(file.name[:17] for file in completed)
        called = procedure.format(path=table.path, clustered=clustered)
        table.spark.sql(f"call {called}").collect()

    return step


OVERWRITE = "insert_overwrite_table"
# Copy on write: updated, clustered, overwritten, clustered again; then the last two undone.
undone = Recipe(
    hudi_options("cow", **IN_PROCESS_LOCK),
    put(numbered_rows, 0, 20, files=1, keep="written"),
    upsert(numbered_rows, 5, 6, version=1, keep="updated"),
    cluster("schedule", keep="clustering planned"),
    cluster("execute", keep="clustered"),
    _call("create_savepoint(path => '{path}', commit_time => '{clustered}')"),
    put(numbered_rows, 0, 30, operation=OVERWRITE, files=1, keep="overwritten"),
    cluster(keep="clustered again"),
    _call("rollback_to_savepoint(path => '{path}', instant_time => '{clustered}')"),
    lambda table: table.keep("undone"),
)

# Merge on read: a base file, a log file, a second base file by a delta commit; compacted.
inserted_and_compacted = Recipe(
    hudi_options("mor", "MERGE_ON_READ", **NO_METADATA_TABLE),
    put(numbered_rows, 0, 20, files=1, keep="written"),
    upsert(numbered_rows, 0, 2, version=1, keep="updated"),
    insert(numbered_rows, 20, 25, files=1, keep="inserted"),
    compact("schedule", keep="compaction planned"),
    compact("run", keep="compacted"),
)


def _cleaned(table: Writing) -> None:
    table.spark.sql(f"create table people using hudi location '{table.path}'")
    table.spark.sql(
        "call run_clean(table => 'people', clean_policy => 'KEEP_LATEST_FILE_VERSIONS', "
        "file_versions_retained => 1)"
    ).collect()
    table.spark.sql("drop table people")
    table.keep("cleaned")


def _person_erased(table_type: str, service: Callable[..., Step]) -> Recipe:
    """300 people, one of them deleted; clustered or compacted; then cleaned by Hudi."""
    by_hand = {**NO_METADATA_TABLE, "hoodie.clean.automatic": "false"}
    return Recipe(
        hudi_options("people", table_type, **by_hand),
        put(_people, 0, 300, files=1, keep="written"),
        delete(_people, 7, 8),
        service(keep="deleted"),
        _cleaned,
    )


person_erased = _person_erased("COPY_ON_WRITE", cluster)
person_erased_with_logs = _person_erased("MERGE_ON_READ", compact)
