"""Tables of awkward values in the states that queries encounter, with Spark's answers."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from tests.golden.predicates import CELL_BY_CELL, PREDICATES, RANGES
from tests.golden.recipe import Recipe, Step, cluster, compact, delete, put, upsert
from tests.hudi_tables import hudi_options

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


def _clustered(
    partition_column: str | None, *later: Step, answers: Sequence[str] = _ALL_PREDICATES
) -> Recipe:
    """Copy on write, not partitioned or in three partitions; clustered."""
    return Recipe(
        hudi_options("clustered", partition_column=partition_column),
        put(awkward_rows, 0, ROWS, keep="written"),
        cluster(keep="clustered", answers=answers),
        *later,
    )


def _with_logs(partition_column: str | None) -> Recipe:
    """Merge on read, not partitioned or in three partitions, compacted; later updates and deletes
    of one of them in log files."""
    last = {"keep": "deleted", "answers": _ALL_PREDICATES}
    return Recipe(
        hudi_options("with_logs", "MERGE_ON_READ", partition_column=partition_column),
        put(awkward_rows, 0, ROWS),
        upsert(awkward_rows, 0, 90, version=1, keep="updated"),
        compact(keep="compacted"),
        upsert(awkward_rows, 30, 60, version=2, where="part = 'p2'"),
        delete(awkward_rows, 60, 75, version=3, where="part = 'p2'", **last),
    )


awkward_clustered = _clustered(None)
awkward_clustered_partitioned = _clustered("part")
# One of the partitions is rewritten by an upsert.
_REWRITTEN = {"where": "part = 'p1'", "keep": "upserted", "answers": _ALL_PREDICATES}
awkward_half_clustered = _clustered(
    "part", upsert(awkward_rows, 0, 60, version=1, **_REWRITTEN), answers=()
)
awkward_with_logs = _with_logs(None)
awkward_with_logs_partitioned = _with_logs("part")
