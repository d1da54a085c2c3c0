"""Tables of unusual shape: changed columns, types that no index supports, odd partitions."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.golden.recipe import Recipe, Step, Writing, compact, delete, put, upsert
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows

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


# Copy on write: a base file; then another with an added column, a wider column, and all columns in
# another order.
columns_added_and_widened = Recipe(
    hudi_options("t", **NEW_FILES),
    put(
        *(keyed_rows, 0, 20, "cast(id * 3 AS int) AS i", "cast(id AS int) AS d", "'old' AS s"),
        keep="written",
    ),
    put(
        *(keyed_rows, 20, 40, "if(id < 0, null, concat('new', id)) AS n", "'new' AS s"),
        *("cast(id + 0.5 AS double) AS d", "if(id % 2 = 0, 3000000000, id) AS i"),
        keep="changed",
        answers=CHANGED,
    ),
)


def _keep_fields(table: Writing) -> None:
    # Hudi's vectorized reader refuses types that changed inside structs and arrays.
    table.spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    try:
        table.keep("changed", FIELDS)
    finally:
        table.spark.conf.set("spark.sql.parquet.enableVectorizedReader", "true")


# Copy on write: a base file; then another with wider struct fields, array elements and decimals,
# and with an added struct field.
_WIDER = "named_struct('x', id + 3000000000, 'z', id % 3, 'y', 'new')"
fields_changed = Recipe(
    hudi_options("t", **NEW_FILES),
    put(
        *(keyed_rows, 0, 20),
        "if(id % 5 = 0, null, named_struct('x', cast(id AS int), 'y', 'old')) AS p",
        "if(id % 4 = 0, null, array(cast(id AS int), null)) AS many",
        "cast(id * 1.25 AS decimal(10, 2)) AS cost",
        keep="written",
    ),
    put(
        *(keyed_rows, 20, 40, f"if(id % 5 = 0, null, {_WIDER}) AS p"),
        "if(id % 4 = 0, null, array(id, id + 3000000000)) AS many",
        "cast(id * 1.25 AS decimal(22, 4)) AS cost",
    ),
    _keep_fields,
)

# Copy on write: a base file; one without its text; one with a new column of the same name.
_DROPS = {"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true"}
_AGAIN = "if(id < 0, null, concat('b', id)) AS s"
column_dropped = Recipe(
    hudi_options("t", **NEW_FILES, **_DROPS),
    put(keyed_rows, 0, 10, "concat('a', id) AS s", "id AS n", keep="written"),
    put(keyed_rows, 10, 20, "id AS n", keep="dropped", answers=WITHOUT_TEXT),
    put(keyed_rows, 20, 30, _AGAIN, "id AS n", keep="there again", answers=WITH_ANOTHER_TEXT),
)

# Copy on write: a column whose name is not a plain identifier.
column_with_umlaut = Recipe(
    hudi_options("cow", **NO_METADATA_TABLE),
    put(keyed_rows, 0, 10, "id AS `größe`", answers=UMLAUT),
)


def _null_partitions(**extra: str) -> Recipe:
    """Two partition columns, with NULLs in both."""
    day = "if(id % 3 = 0, null, concat('d', id % 3)) AS day"
    city = "if(id % 4 = 0, null, concat('c ', id % 2)) AS city"
    options = hudi_options("t", partition_column="day,city", **NO_METADATA_TABLE, **extra)
    return Recipe(options, put(keyed_rows, 0, 24, day, city, answers=NULL_PARTITIONS))


null_partitions = _null_partitions()
null_partitions_hive_style = _null_partitions(**HIVE_STYLE)

# Merge on read: arrays of arrays, structs in structs, maps; then updates of one of the two
# partitions in a log file.
_NESTED_COLUMNS = (
    "array(array(id), array(id + 1)) AS numbers",
    "named_struct('x', id, 'deep', named_struct('y', cast(id AS double))) AS nested",
    "map(concat('k', id), id) AS pairs",
    "array(named_struct('days', array(date'2020-01-01'))) AS days",
    "concat('name', id % 10) AS name",
    "concat('p', id % 2) AS part",
)
_UPDATED = {"where": "part = 'p0'", "keep": "updated", "answers": NESTED}
nested_types = Recipe(
    hudi_options("t", "MERGE_ON_READ", partition_column="part", **NO_METADATA_TABLE),
    put(keyed_rows, 0, 60, *_NESTED_COLUMNS, answers=NESTED),
    upsert(keyed_rows, 2, 8, *_NESTED_COLUMNS, version=1, **_UPDATED),
)


def put_in_two_levels(*arguments: Any) -> Step:
    """`upsert` with arrays in the older of Parquet's two layouts."""

    def step(table: Writing) -> None:
        layout = "parquet.avro.write-old-list-structure"
        hadoop = table.spark._jsc.hadoopConfiguration()
        hadoop.set(layout, "true")
        try:
            upsert(*arguments)(table)
        finally:
            hadoop.set(layout, "false")

    return step


arrays_of_two_levels = Recipe(
    hudi_options("t", **NO_METADATA_TABLE),
    put_in_two_levels(
        keyed_rows, 0, 20, "if(id % 3 = 0, null, array(concat('t', id % 5))) AS tags"
    ),
    lambda table: table.keep("written", TAGS),
)

# Column `s` contains bytes that are not UTF-8.
_BROKEN = (
    "cast(element_at(array(X'61FF', X'EDA080', X'6162', X'', null, X'FF61'), "
    "cast(id % 6 AS int) + 1) AS string) AS s"
)
texts_that_are_no_utf8 = Recipe(
    hudi_options("t", **NO_METADATA_TABLE), put(keyed_rows, 0, 60, _BROKEN, answers=NO_UTF8)
)


def _wall_clock_times(version: str) -> Recipe:
    """Timestamps without time zone."""
    columns = (f"{WALL} AS wall", f"named_struct('at', {WALL}) AS s")
    return Recipe(
        hudi_options("t", **NO_METADATA_TABLE, **{"hoodie.write.table.version": version}),
        put(keyed_rows, 0, 30, *columns, answers=WALL_CLOCK),
    )


wall_clock_times = _wall_clock_times("9")
wall_clock_times_in_version_6 = _wall_clock_times("6")


def _names(spark: SparkSession, start: int, end: int, of: int) -> DataFrame:
    part = "concat('p', id % 2) AS part"
    name = f"if(id % 7 = 0, null, concat('x', id % {of})) AS name"
    return keyed_rows(spark, start, end, part, name, version=10 - of)


# Merge on read, table version 6, two partitions: compacted, updated, with deletes, compacted again,
# and one partition updated again.
_VERSION_6 = {**NO_METADATA_TABLE, "hoodie.write.table.version": "6"}
compacted_twice = Recipe(
    hudi_options("t", "MERGE_ON_READ", partition_column="part", **_VERSION_6),
    upsert(_names, 0, 60, 7),
    upsert(_names, 10, 20, 5),
    compact(keep="compacted"),
    upsert(_names, 15, 70, 4),
    delete(_names, 0, 5, 3, where="part = 'p0'", keep="updated", answers=NAMES),
    compact(keep="compacted again"),
    upsert(_names, 30, 40, 2, where="part = 'p0'", keep="updated again", answers=NAMES),
)


def _moved(spark: SparkSession) -> DataFrame:
    rows = numbered_rows(spark, 0, 1, version=1)
    return rows.selectExpr("id", "msg", "amount", "ts", "'2026-01-02' AS dt")


def _stays_in_its_partition(table_type: str) -> Recipe:
    """A later version of a row in 2026-01-01 has the partition value 2026-01-02."""
    return Recipe(
        hudi_options("t", table_type, partition_column="dt", **STAYS),
        put(numbered_rows, 0, 20),
        upsert(_moved, keep="moved", answers=STAYED),
    )


stays_in_its_partition = _stays_in_its_partition("COPY_ON_WRITE")
stays_in_its_partition_with_logs = _stays_in_its_partition("MERGE_ON_READ")


def _partitioned(spark: SparkSession, stop: int, *columns: str) -> DataFrame:
    return numbered_rows(spark, 0, stop).selectExpr("id", *columns)


# Partitioned by a text, a number and a day, hive style and encoded.
_NAME = (
    "element_at(array('a b/c=d%2F', 'Zürich #?&', 'plain', '007'), cast(id % 4 AS int) + 1) AS name"
)
_DAY = "date_add(date'2026-01-01', cast(id % 2 AS int)) AS day"
_ENCODED = {**NO_METADATA_TABLE, **HIVE_STYLE, **URL_ENCODED}
three_partition_columns = Recipe(
    hudi_options("t", partition_column="name,number,day", **_ENCODED),
    put(
        *(_partitioned, 24, "amount", "ts", _NAME, "cast(id % 3 - 1 AS int) AS number", _DAY),
        answers=THREE_PARTITION_COLUMNS,
    ),
)

# Partitioned by NULL, an empty string, and texts that look encoded.
_PART = "element_at(array('a', '', null, '%41b', '%+1'), cast(id % 5 AS int) + 1) AS part"
odd_partition_values = Recipe(
    hudi_options("t", partition_column="part", **NO_METADATA_TABLE),
    put(_partitioned, 20, "ts", "amount", _PART, answers=ODD_PARTITIONS),
)
