"""Tables of awkward values in the states that queries encounter, with Spark's answers."""

from pyspark.sql import DataFrame, SparkSession

from tests.golden.predicates import CELL_BY_CELL, PREDICATES, RANGES
from tests.golden.recipe import Writing, recipe
from tests.hudi_tables import hudi_options, run_clustering, run_compaction, write

ROWS = 600

_ALL_PREDICATES = list(dict.fromkeys([*PREDICATES, *RANGES, *CELL_BY_CELL]))


def awkward_rows(spark: SparkSession, start: int, end: int, version: int = 0) -> DataFrame:
    """Rows with NULLs, NaN, -0.0, infinities, empty strings, Unicode, far dates, and all of these
    in arrays and structs."""
    names = (
        "array('', 'Ünïcödé', '😀 emoji', 'a%b', 'a_b', 'back\\\\\\\\slash', "
        "'plain', 'PLAIN', null)"
    )
    prices = (
        "array(double('NaN'), -0.0D, 0.0D, 1.5D, -1.5D, double('Infinity'), "
        "double('-Infinity'), 1e300D, null)"
    )
    pick = "element_at({}, cast(pmod(xxhash64(id, {}), {}) AS int) + 1)"
    return spark.range(start, end, 1, 2).selectExpr(
        "cast(id AS string) AS id",
        f"{pick.format(names, 1, 9)} AS name",
        "if(id % 13 = 0, null, "
        "concat('Buying a new ', if(id % 3 = 0, 'car', 'home'), ' ', id % 50)) AS msg",
        f"{pick.format(prices, 2, 9)} AS price",
        f"cast({pick.format(prices, 3, 9)} AS float) AS ratio",
        f"if(id % 7 = 0, null, id * 3 + {version}) AS amount",
        "cast(id % 100 - 50 AS int) AS small",
        "if(id % 5 = 0, null, id % 2 = 0) AS flag",
        "date_add(date'0001-01-01', cast(id * 6000 AS int)) AS born",
        "timestamp_micros(id * 1000001 - 300000000) AS seen",
        "cast(id * 7.25 AS decimal(12, 2)) AS cost",
        "if(id % 11 = 0, null, "
        "cast(id - 300 AS decimal(10, 0)) * 12345678901234567890.5BD) AS huge",
        "if(id % 10 = 0, null, if(id % 10 = 1, X'', unhex(hex(id * 7 % 300)))) AS raw",
        "if(id % 8 = 0, null, if(id % 9 = 1, cast(array() AS array<string>), "
        "array(concat('t', id % 5), if(id % 3 = 0, null, 'x'), if(id % 4 = 1, '', 't1')))) AS tags",
        "if(id % 6 = 0, null, "
        f"array({pick.format(prices, 4, 9)}, cast(id % 4 AS double))) AS codes",
        f"if(id % 7 = 3, null, named_struct('City', {pick.format(names, 5, 9)}, 'zip', "
        f"cast(id % 50 AS int), 'geo', named_struct('lat', {pick.format(prices, 6, 9)}))) AS place",
        f"cast({version} AS bigint) AS ts",
        "concat('p', id % 3) AS part",
    )


@recipe
def awkward_clustered(table: Writing) -> None:
    """Copy on write, not partitioned; clustered."""
    _clustered(table, None)


@recipe
def awkward_clustered_partitioned(table: Writing) -> None:
    """Copy on write, three partitions; clustered."""
    _clustered(table, "part")


@recipe
def awkward_half_clustered(table: Writing) -> None:
    """Copy on write, three partitions, clustered; then one of them rewritten by an upsert."""
    options = _clustered(table, "part", predicates=())
    changed = awkward_rows(table.spark, 0, 60, version=1).where("part = 'p1'")
    write(changed, table.path, options, "upsert")
    table.keep("upserted", _ALL_PREDICATES)


@recipe
def awkward_with_logs(table: Writing) -> None:
    """Merge on read, not partitioned, compacted; later updates and deletes in log files."""
    _with_logs(table, None)


@recipe
def awkward_with_logs_partitioned(table: Writing) -> None:
    """Merge on read, three partitions, compacted; later updates and deletes of one in log files."""
    _with_logs(table, "part")


def _clustered(
    table: Writing,
    partition_column: str | None,
    predicates: list[str] | tuple[str, ...] = _ALL_PREDICATES,
) -> dict[str, str]:
    spark, path = table.spark, table.path
    options = hudi_options("clustered", partition_column=partition_column)
    write(awkward_rows(spark, 0, ROWS), path, options, "bulk_insert")
    table.keep("written")
    run_clustering(spark, path)
    table.keep("clustered", predicates)
    return options


def _with_logs(table: Writing, partition_column: str | None) -> None:
    spark, path = table.spark, table.path
    options = hudi_options("with_logs", "MERGE_ON_READ", partition_column=partition_column)
    write(awkward_rows(spark, 0, ROWS), path, options, "bulk_insert")
    write(awkward_rows(spark, 0, 90, version=1), path, options, "upsert")
    table.keep("updated")
    run_compaction(spark, path)
    table.keep("compacted")
    changed = awkward_rows(spark, 30, 60, version=2).where("part = 'p2'")
    write(changed, path, options, "upsert")
    deleted = awkward_rows(spark, 60, 75, version=3).where("part = 'p2'")
    write(deleted, path, options, "delete")
    table.keep("deleted", _ALL_PREDICATES)
