"""Two sessions on the same indexed tables: a plain one, and one whose queries may use the index."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from hudi_index_service.sql import enable, last_queries
from hudi_index_service.sql.rule.uses import RelationUse
from tests.cost_constants import given_costs
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, timeline_folder, write
from tests.indexed import indexed
from tests.spark_session import PATIENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KINDS = ("rule_cow", "rule_partitioned", "rule_merged")


def rows(spark: "SparkSession", start: int, stop: int, version: int = 0) -> "DataFrame":
    """Rows for keys [start, stop) with a column of each type, every eleventh value NULL."""
    n = F.col("id")

    def sparse(value: "F.Column") -> "F.Column":
        return F.when(n % 11 != 0, value)

    return spark.range(start, stop).select(
        n.cast("string").alias("id"),
        sparse(F.concat(F.lit("Buying car "), (n % 7).cast("string"))).alias("msg"),
        (n * 3 + version).alias("amount"),
        sparse((n % 50).cast("int")).alias("age"),
        sparse((n * 7 % 100).cast("decimal(10,2)") / 4).cast("decimal(10,2)").alias("price"),
        F.when(n % 13 == 0, F.lit(float("nan"))).otherwise(sparse(n / 8)).alias("score"),
        sparse(F.date_add(F.lit("2026-01-01").cast("date"), (n % 60).cast("int"))).alias("day"),
        sparse(F.timestamp_seconds(n * 3600 + 1767225600)).alias("at"),
        sparse(n % 2 == 0).alias("flag"),
        F.struct(
            sparse(F.concat(F.lit("city "), (n % 9).cast("string"))).alias("city"),
            (n % 5).cast("int").alias("zip"),
        ).alias("place"),
        F.array((n % 4).cast("string"), F.lit("all")).alias("tags"),
        F.lit(version).cast("long").alias("ts"),
        F.concat(F.lit("2026-01-0"), (n % 2 + 1).cast("string")).alias("dt"),
    )


INDEXED = ["id", "msg", "amount", "age", "price", "score", "day", "at", "flag", "place.city"]


def write_indexed(
    spark: "SparkSession", path: Path, name: str, *, merged: bool = False, count: int = 200
) -> None:
    """An indexed table; with `merged`, one of its two base files has log files."""
    options = hudi_options(
        name,
        "MERGE_ON_READ" if merged else "COPY_ON_WRITE",
        partition_column=None if name.endswith("cow") else "dt",
        **NO_METADATA_TABLE,
    )
    write(rows(spark, 0, count), path, options, "insert")
    if merged:
        write(rows(spark, 0, 20, 1).where("dt = '2026-01-01'"), path, options)
    build(path)


def build(path: Path) -> None:
    """Defines the index if need be, and builds it."""
    indexed(path, [*INDEXED, "tags", "dt"], if_not_exists=True).close()


@dataclass(frozen=True)
class Tables:
    """The tables named in `KINDS`, which no test changes."""

    folder: Path
    first_instant: str


@pytest.fixture(scope="session")
def tables(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tables]:
    folder = tmp_path_factory.mktemp("rule")
    for kind in KINDS:
        write_indexed(spark, folder / kind, kind, merged=kind.endswith("merged"))
        spark.sql(f"CREATE TABLE {kind} USING hudi LOCATION '{folder / kind}'")
    instants = sorted(
        each.name[:17]
        for each in timeline_folder(folder / "rule_merged").glob("[0-9]*_*.deltacommit")
    )
    yield Tables(folder, instants[0])
    for kind in KINDS:
        spark.sql(f"DROP TABLE {kind}")


@pytest.fixture(scope="session")
def written(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with two partitions, without an index."""
    path = tmp_path_factory.mktemp("statements") / "messages"
    options = hudi_options("messages", partition_column="dt", **NO_METADATA_TABLE)
    write(rows(spark, 0, 40), path, options, "insert")
    return path


@pytest.fixture(scope="session")
def enabled_once(spark: "SparkSession") -> "SparkSession":
    """A session with the rule, beside that of all tests, which stays without."""
    session = spark.newSession()
    enable(session)
    return session


@pytest.fixture
def enabled(enabled_once: "SparkSession") -> "Iterator[SparkSession]":
    """The session with the rule, with its settings as they were after each test."""
    for key, value in PATIENT.items():
        enabled_once.conf.set(key, value)
    # Hudi leaves it switched off, as tests/conftest.py says of the other session.
    enabled_once.conf.set("spark.sql.parquet.enableVectorizedReader", "true")
    yield enabled_once
    enabled_once.conf.unset("spark.hudi.index.enabled")


@pytest.fixture
def costs(enabled_once: "SparkSession") -> Iterator[Callable[..., None]]:
    """Sets some of the optimizer's cost constants until the end of the test."""
    with given_costs(enabled_once) as costs:
        yield costs


@pytest.fixture
def read_by_tasks(costs: Callable[..., None]) -> None:
    """Makes the index read every relation that it may read, and Spark tasks its rows."""
    costs(spark_scan_ms=1e12, handing_ms=1e9)


Query = Callable[["SparkSession"], "DataFrame"]


@pytest.fixture
def agreed(
    spark: "SparkSession", enabled: "SparkSession", tables: Tables
) -> Callable[[str | Query], tuple[RelationUse, ...]]:
    """Runs a query with and without the rule, compares rows, names, types and nullability, and
    returns how the relations were read."""

    def run(query: str | Query) -> tuple[RelationUse, ...]:
        def frame(session: "SparkSession") -> "DataFrame":
            return session.sql(query) if isinstance(query, str) else query(session)

        found, plain = frame(enabled), frame(spark)
        assert found.schema == plain.schema
        assert rows_of(found) == rows_of(plain)
        return last_queries(enabled)[-1]

    return run


def rows_of(frame: "DataFrame") -> list[str]:
    """A query's rows, sorted."""
    return sorted(map(repr, frame.collect()))


def by_index(uses: tuple[RelationUse, ...]) -> list[bool]:
    """For each relation of a query whether the index was used."""
    return [each.by_index for each in uses]


def without_ids(plan: str) -> str:
    """A plan as text, without the numbers that Spark gives to expressions and nodes."""
    return re.sub(r"#\d+L?|\[plan_id=\d+\]", "", plan)
