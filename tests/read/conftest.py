"""Real Hudi tables with awkward values, indexed, in the states that queries meet."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from hudi_index_service import Column, IndexedTable, open_table
from tests.hudi_tables import hudi_options, run_clustering, run_compaction, write

ROWS = 600
COLUMNS = [
    "name",
    Column(name="msg", options={"analyzer": "standard"}),
    "price",
    "ratio",
    "amount",
    "small",
    "flag",
    "born",
    "seen",
    "cost",
    "huge",
    "raw",
    "tags",
    "codes",
    "place.City",
    "place.zip",
    "place.geo.lat",
]


@dataclass(frozen=True)
class Indexed:
    """A table on disk, opened without Spark, and how Spark reads it."""

    path: Path
    table: IndexedTable
    spark: SparkSession

    def by_spark(self, where: str | None = None) -> DataFrame:
        """What plain Spark returns."""
        rows = self.spark.read.format("hudi").load(str(self.path))
        return rows if where is None else rows.where(where)


def awkward_rows(spark: SparkSession, start: int, end: int, version: int = 0) -> DataFrame:
    """Rows with NULLs, NaN, -0.0, infinities, empty strings, Unicode, far dates, and all of these
    inside arrays and structs."""
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


def _define(path: Path) -> IndexedTable:
    table = open_table(path)
    table.create_index("all_columns", COLUMNS)
    return table


@pytest.fixture(scope="session")
def clustered(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[bool], Indexed]:
    """Clustered copy-on-write tables, by whether they are partitioned: every slice is covered."""
    made: dict[bool, Indexed] = {}

    def make(partitioned: bool) -> Indexed:
        if partitioned not in made:
            path = tmp_path_factory.mktemp("clustered") / "table"
            options = hudi_options("clustered", partition_column="part" if partitioned else None)
            write(awkward_rows(spark, 0, ROWS), path, options, "bulk_insert")
            table = _define(path)
            run_clustering(spark, path)
            table.build().raise_for_failures()
            made[partitioned] = Indexed(path, table, spark)
        return made[partitioned]

    return make


@pytest.fixture(scope="session")
def half_covered(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Indexed:
    """A copy-on-write table of which a later upsert rewrote one partition: that one is scanned."""
    path = tmp_path_factory.mktemp("half_covered") / "table"
    options = hudi_options("half_covered", partition_column="part")
    write(awkward_rows(spark, 0, ROWS), path, options, "bulk_insert")
    table = _define(path)
    run_clustering(spark, path)
    table.build().raise_for_failures()
    changed = awkward_rows(spark, 0, 60, version=1).where("part = 'p1'")
    write(changed, path, options, "upsert")
    return Indexed(path, table, spark)


@pytest.fixture(scope="session")
def with_logs(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[bool], Indexed]:
    """Compacted merge-on-read tables with later updates and deletes in log files, by whether they
    are partitioned."""
    made: dict[bool, Indexed] = {}

    def make(partitioned: bool) -> Indexed:
        if partitioned not in made:
            path = tmp_path_factory.mktemp("with_logs") / "table"
            options = hudi_options(
                "with_logs", "MERGE_ON_READ", partition_column="part" if partitioned else None
            )
            write(awkward_rows(spark, 0, ROWS), path, options, "bulk_insert")
            write(awkward_rows(spark, 0, 90, version=1), path, options, "upsert")
            table = _define(path)
            run_compaction(spark, path)
            table.build().raise_for_failures()
            changed = awkward_rows(spark, 30, 60, version=2).where("part = 'p2'")
            write(changed, path, options, "upsert")
            gone = awkward_rows(spark, 60, 75, version=3).where("part = 'p2'")
            write(gone, path, options, "delete")
            made[partitioned] = Indexed(path, table, spark)
        return made[partitioned]

    return make
