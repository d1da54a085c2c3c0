"""Tables of unusual shape: changed columns, types that no index supports, odd partitions."""

from pyspark.sql import DataFrame, SparkSession

from tests.golden.recipe import Writing, recipe
from tests.hudi_tables import (
    NO_METADATA_TABLE,
    hudi_options,
    numbered_rows,
    run_compaction,
    write,
)

# Each write creates its own base files.
NEW_FILES = {**NO_METADATA_TABLE, "hoodie.parquet.small.file.limit": "0"}
HIVE_STYLE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
URL_ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
# A record stays in its partition, even if a later version has another partition value.
STAYS = {
    **NO_METADATA_TABLE,
    "hoodie.index.type": "GLOBAL_SIMPLE",
    "hoodie.simple.index.update.partition.path": "false",
}

CHANGED = [
    "i = 3000000000 OR i < 30",
    "d > 18.5 AND d < 22",
    "NOT (n = 'new21')",
    "n <=> NULL AND s IN ('old', 'new') AND d >= 7",
]
FIELDS = [
    "p.x > 15",
    "p.z IS NULL AND p.y = 'old'",
    "p.z = 1",
    "p.y = 'new' OR p IS NULL",
    "array_contains(many, 3)",
    "NOT array_contains(many, 3000000021)",
    "cost = 12.5 OR cost > 45.1",
]
WITHOUT_TEXT = ["n IN (3, 13)"]
WITH_ANOTHER_TEXT = ["s = 'a1'", "s IS NULL", "s > 'a8'", "s LIKE 'b2%' AND n < 25"]
UMLAUT = ["`größe` > 7", "id = '3'"]
NULL_PARTITIONS = ["day IS NULL", "city = 'c 1'", "day = 'd1' OR city IS NULL"]
NESTED = [
    "name = 'name3'",
    "name IN ('name2', 'name9')",
    "nested.deep.y > 7 AND nested.x < 9",
    "pairs IS NOT NULL AND name = 'name1'",
]
TAGS = ["array_contains(tags, 't1')", "NOT array_contains(tags, 't1')", "tags IS NULL"]
NO_UTF8 = [
    "s = 'ab'",
    "s <> 'ab'",
    "s > 'a'",
    "s IN ('', 'ab')",
    "NOT (s <=> '')",
    "s LIKE 'a%'",
    "s LIKE '%a'",
    "s LIKE '%a%'",
    "s IS NULL",
]
WALL_CLOCK = [
    "wall > TIMESTAMP_NTZ'1970-01-01 00:00:05'",
    "wall = TIMESTAMP_NTZ'1969-12-31 23:59:56.000001'",
    "wall IS NULL AND id > '2'",
    "s.at <= TIMESTAMP_NTZ'1970-01-01 00:00:00'",
    "id = '7'",
]
NAMES = ["name IS NULL", "name > 'x2'"]
STAYED = [
    "id = '0'",
    "dt = '2026-01-01'",
    "dt = '2026-01-02'",
    "dt = '2026-01-01' AND amount = 1",
    "NOT (dt = '2026-01-01') OR amount = 1",
    "dt <> '2026-01-02' AND amount < 10",
]
THREE_PARTITION_COLUMNS = [
    "name = 'a b/c=d%2F'",
    "name LIKE 'Z%' AND number = -1",
    "number IN (0, 7) AND amount > 10",
    "day > DATE'2026-01-01'",
    "name = '7' OR number > 0",
    "name = '007' AND day <= DATE'2026-01-01'",
]
ODD_PARTITIONS = ["part > 'A'", "part LIKE '%41%'", "part IN ('Ab', '%41b', '\\u0001')"]


WALL = "if(id % 4 = 0, null, cast(timestamp_micros(id * 1000001 - 5000000) AS timestamp_ntz))"
"""A time without zone, as an expression over ``id``."""


def keyed_rows(
    spark: SparkSession, start: int, end: int, *columns: str, version: int = 0
) -> DataFrame:
    """Keys [start, end) with `columns`, which are expressions over the number ``id``."""
    key = ("cast(id AS string) AS id", f"cast({version} AS bigint) AS ts")
    return spark.range(start, end, 1, 1).selectExpr(*key, *columns)


@recipe
def columns_added_and_widened(table: Writing) -> None:
    """Copy on write: a base file; then another with an added column, a wider column, and all
    columns in another order."""
    options = hudi_options("t", **NEW_FILES)
    before = ("cast(id * 3 AS int) AS i", "cast(id AS int) AS d", "'old' AS s")
    write(keyed_rows(table.spark, 0, 20, *before), table.path, options, "bulk_insert")
    table.keep("written")
    after = (
        "if(id < 0, null, concat('new', id)) AS n",
        "'new' AS s",
        "cast(id + 0.5 AS double) AS d",
        "if(id % 2 = 0, 3000000000, id) AS i",
    )
    write(keyed_rows(table.spark, 20, 40, *after), table.path, options, "bulk_insert")
    table.keep("changed", CHANGED)


@recipe
def fields_changed(table: Writing) -> None:
    """Copy on write: a base file; then another with wider struct fields, array elements and
    decimals, and with an added struct field."""
    options = hudi_options("t", **NEW_FILES)
    before = (
        "if(id % 5 = 0, null, named_struct('x', cast(id AS int), 'y', 'old')) AS p",
        "if(id % 4 = 0, null, array(cast(id AS int), null)) AS many",
        "cast(id * 1.25 AS decimal(10, 2)) AS cost",
    )
    write(keyed_rows(table.spark, 0, 20, *before), table.path, options, "bulk_insert")
    table.keep("written")
    after = (
        "if(id % 5 = 0, null, named_struct('x', id + 3000000000, 'z', id % 3, 'y', 'new')) AS p",
        "if(id % 4 = 0, null, array(id, id + 3000000000)) AS many",
        "cast(id * 1.25 AS decimal(22, 4)) AS cost",
    )
    write(keyed_rows(table.spark, 20, 40, *after), table.path, options, "bulk_insert")
    # Hudi's vectorized reader refuses types that changed inside structs and arrays.
    table.spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    try:
        table.keep("changed", FIELDS)
    finally:
        table.spark.conf.set("spark.sql.parquet.enableVectorizedReader", "true")


@recipe
def column_dropped(table: Writing) -> None:
    """Copy on write: a base file; one without its text; one with a new column of the same name."""
    drops = {"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true"}
    options = hudi_options("t", **NEW_FILES, **drops)
    with_texts = keyed_rows(table.spark, 0, 10, "concat('a', id) AS s", "id AS n")
    write(with_texts, table.path, options, "bulk_insert")
    table.keep("written")
    write(keyed_rows(table.spark, 10, 20, "id AS n"), table.path, options, "bulk_insert")
    table.keep("dropped", WITHOUT_TEXT)
    again = ("if(id < 0, null, concat('b', id)) AS s", "id AS n")
    write(keyed_rows(table.spark, 20, 30, *again), table.path, options, "bulk_insert")
    table.keep("there again", WITH_ANOTHER_TEXT)


@recipe
def column_with_umlaut(table: Writing) -> None:
    """Copy on write: a column whose name is not a plain identifier."""
    rows = keyed_rows(table.spark, 0, 10, "id AS `größe`")
    write(rows, table.path, hudi_options("cow", **NO_METADATA_TABLE), "bulk_insert")
    table.keep("written", UMLAUT)


@recipe
def null_partitions(table: Writing) -> None:
    """Two partition columns, with NULLs in both."""
    _null_partitions(table, {})


@recipe
def null_partitions_hive_style(table: Writing) -> None:
    """Two partition columns in hive style, with NULLs in both."""
    _null_partitions(table, HIVE_STYLE)


@recipe
def nested_types(table: Writing) -> None:
    """Merge on read: arrays of arrays, structs in structs, maps; then updates of one of the two
    partitions in a log file."""
    columns = (
        "array(array(id), array(id + 1)) AS numbers",
        "named_struct('x', id, 'deep', named_struct('y', cast(id AS double))) AS nested",
        "map(concat('k', id), id) AS pairs",
        "array(named_struct('days', array(date'2020-01-01'))) AS days",
        "concat('name', id % 10) AS name",
        "concat('p', id % 2) AS part",
    )
    options = hudi_options("t", "MERGE_ON_READ", partition_column="part", **NO_METADATA_TABLE)
    write(keyed_rows(table.spark, 0, 60, *columns), table.path, options, "bulk_insert")
    table.keep("written", NESTED)
    changed = keyed_rows(table.spark, 2, 8, *columns, version=1).where("part = 'p0'")
    write(changed, table.path, options, "upsert")
    table.keep("updated", NESTED)


@recipe
def arrays_of_two_levels(table: Writing) -> None:
    """Arrays in the older of Parquet's two layouts."""
    layout = "parquet.avro.write-old-list-structure"
    hadoop = table.spark._jsc.hadoopConfiguration()
    rows = keyed_rows(
        table.spark, 0, 20, "if(id % 3 = 0, null, array(concat('t', id % 5))) AS tags"
    )
    hadoop.set(layout, "true")
    try:
        write(rows, table.path, hudi_options("t", **NO_METADATA_TABLE), "upsert")
    finally:
        hadoop.set(layout, "false")
    table.keep("written", TAGS)


@recipe
def texts_that_are_no_utf8(table: Writing) -> None:
    """Column `s` contains bytes that are not UTF-8."""
    broken = "element_at(array(X'61FF', X'EDA080', X'6162', X'', null, X'FF61'), {})"
    rows = keyed_rows(
        table.spark, 0, 60, f"cast({broken.format('cast(id % 6 AS int) + 1')} AS string) AS s"
    )
    write(rows, table.path, hudi_options("t", **NO_METADATA_TABLE), "bulk_insert")
    table.keep("written", NO_UTF8)


@recipe
def wall_clock_times(table: Writing) -> None:
    """Timestamps without time zone."""
    _wall_clock_times(table, "9")


@recipe
def wall_clock_times_in_version_6(table: Writing) -> None:
    """Timestamps without time zone, table version 6."""
    _wall_clock_times(table, "6")


@recipe
def compacted_twice(table: Writing) -> None:
    """Merge on read, table version 6, two partitions: compacted, updated, with deletes, compacted
    again, and one partition updated again."""
    spark, path = table.spark, table.path
    options = hudi_options(
        "t",
        "MERGE_ON_READ",
        partition_column="part",
        **NO_METADATA_TABLE,
        **{"hoodie.write.table.version": "6"},
    )

    def some(start: int, end: int, of: int) -> DataFrame:
        part = "concat('p', id % 2) AS part"
        name = f"if(id % 7 = 0, null, concat('x', id % {of})) AS name"
        return keyed_rows(spark, start, end, part, name, version=10 - of)

    write(some(0, 60, 7), path, options, "upsert")
    write(some(10, 20, 5), path, options, "upsert")
    run_compaction(spark, path)
    table.keep("compacted")
    write(some(15, 70, 4), path, options, "upsert")
    write(some(0, 5, 3).where("part = 'p0'"), path, options, "delete")
    table.keep("updated", NAMES)
    run_compaction(spark, path)
    table.keep("compacted again")
    write(some(30, 40, 2).where("part = 'p0'"), path, options, "upsert")
    table.keep("updated again", NAMES)


@recipe
def stays_in_its_partition(table: Writing) -> None:
    """Copy on write: a later version of a row in 2026-01-01 has the partition value 2026-01-02."""
    _stays_in_its_partition(table, "COPY_ON_WRITE")


@recipe
def stays_in_its_partition_with_logs(table: Writing) -> None:
    """The same as merge on read."""
    _stays_in_its_partition(table, "MERGE_ON_READ")


@recipe
def three_partition_columns(table: Writing) -> None:
    """Partitioned by a text, a number and a day, hive style and encoded."""
    columns = "name,number,day"
    extra = {**NO_METADATA_TABLE, **HIVE_STYLE, **URL_ENCODED}
    rows = numbered_rows(table.spark, 0, 24).selectExpr(
        "id",
        "amount",
        "ts",
        "element_at(array('a b/c=d%2F', 'Zürich #?&', 'plain', '007'), "
        "cast(id % 4 AS int) + 1) AS name",
        "cast(id % 3 - 1 AS int) AS number",
        "date_add(date'2026-01-01', cast(id % 2 AS int)) AS day",
    )
    options = hudi_options("t", partition_column=columns, **extra)
    write(rows, table.path, options, "bulk_insert")
    table.keep("written", THREE_PARTITION_COLUMNS)


@recipe
def odd_partition_values(table: Writing) -> None:
    """Partitioned by NULL, an empty string, and texts that look encoded."""
    options = hudi_options("t", partition_column="part", **NO_METADATA_TABLE)
    rows = numbered_rows(table.spark, 0, 20).selectExpr(
        "id",
        "ts",
        "amount",
        "element_at(array('a', '', null, '%41b', '%+1'), cast(id % 5 AS int) + 1) AS part",
    )
    write(rows, table.path, options, "bulk_insert")
    table.keep("written", ODD_PARTITIONS)


def _null_partitions(table: Writing, extra: dict[str, str]) -> None:
    rows = keyed_rows(
        table.spark,
        0,
        24,
        "if(id % 3 = 0, null, concat('d', id % 3)) AS day",
        "if(id % 4 = 0, null, concat('c ', id % 2)) AS city",
    )
    options = hudi_options("t", partition_column="day,city", **NO_METADATA_TABLE, **extra)
    write(rows, table.path, options, "bulk_insert")
    table.keep("written", NULL_PARTITIONS)


def _wall_clock_times(table: Writing, version: str) -> None:
    rows = keyed_rows(table.spark, 0, 30, f"{WALL} AS wall", f"named_struct('at', {WALL}) AS s")
    options = hudi_options("t", **NO_METADATA_TABLE, **{"hoodie.write.table.version": version})
    write(rows, table.path, options, "bulk_insert")
    table.keep("written", WALL_CLOCK)


def _stays_in_its_partition(table: Writing, table_type: str) -> None:
    options = hudi_options("t", table_type, partition_column="dt", **STAYS)
    write(numbered_rows(table.spark, 0, 20), table.path, options, "bulk_insert")
    moved = numbered_rows(table.spark, 0, 1, version=1).selectExpr(
        "id", "msg", "amount", "ts", "'2026-01-02' AS dt"
    )
    write(moved, table.path, options)
    table.keep("moved", STAYED)
