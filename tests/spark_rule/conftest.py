"""Two sessions on the same indexed tables: a plain one, and one whose queries may use the index."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hudi_index_service.sql import enable, last_queries
from hudi_index_service.sql.rule.reader import RelationReader
from hudi_index_service.sql.rule.uses import RelationUse
from tests.cost_constants import given_costs
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, timeline_folder, write
from tests.indexed import indexed
from tests.spark_session import PATIENT

KINDS = ("rule_cow", "rule_partitioned", "rule_merged")


def rows(spark: SparkSession, start: int, stop: int, version: int = 0) -> DataFrame:
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


def build(path: Path) -> None:
    """Defines the index if need be, and builds it."""
    indexed(path, [*INDEXED, "tags", "dt"], if_not_exists=True).close()


@dataclass(frozen=True)
class Tables:
    """The tables named in `KINDS`, which no test changes."""

    folder: Path
    first_instant: str


@pytest.fixture(scope="session")
def tables(
    spark: SparkSession, named: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory
) -> Tables:
    folder = tmp_path_factory.mktemp("rule")
    for kind in KINDS:
        has_logs = kind == "rule_merged"  # one of its two base files
        options = hudi_options(
            kind,
            "MERGE_ON_READ" if has_logs else "COPY_ON_WRITE",
            partition_column=None if kind == "rule_cow" else "dt",
            **NO_METADATA_TABLE,
        )
        write(rows(spark, 0, 200), folder / kind, options, "insert")
        if has_logs:
            updated = rows(spark, 0, 20, 1).where("dt = '2026-01-01'")
            write(updated, folder / kind, options)
        build(folder / kind)
        named(folder / kind)
    instants = sorted(
        each.name[:17]
        for each in timeline_folder(folder / "rule_merged").glob("[0-9]*_*.deltacommit")
    )
    return Tables(folder, instants[0])


@pytest.fixture(scope="session")
def named(spark: SparkSession) -> Iterator[Callable[[Path], Path]]:
    """Gives a table the name of its folder in Spark's catalog, until the end of the tests."""
    names = []

    def name(path: Path) -> Path:
        spark.sql(f"CREATE TABLE {path.name} USING hudi LOCATION '{path}'")
        names.append(path.name)
        return path

    yield name
    for each in names:
        spark.sql(f"DROP TABLE {each}")


MakeTable = Callable[..., Path]


@pytest.fixture(scope="session")
def make_table(
    named: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory
) -> MakeTable:
    """Writes rows as a table of a name, and indexes some of its columns."""

    def make(name: str, rows: DataFrame, columns: list[str], *type_: str, **options: str) -> Path:
        path = tmp_path_factory.mktemp("made") / name
        options = hudi_options(name, *type_, **NO_METADATA_TABLE, **options)
        write(rows, path, options, "insert")
        indexed(path, columns).close()
        return named(path)

    return make


@pytest.fixture(scope="session")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with two partitions, without an index."""
    path = tmp_path_factory.mktemp("statements") / "messages"
    options = hudi_options("messages", partition_column="dt", **NO_METADATA_TABLE)
    write(rows(spark, 0, 40), path, options, "insert")
    return path


@pytest.fixture(scope="session")
def enabled_once(spark: SparkSession) -> SparkSession:
    """A session with the rule, beside that of all tests, which stays without."""
    session = spark.newSession()
    enable(session)
    return session


@pytest.fixture
def enabled(enabled_once: SparkSession) -> Iterator[SparkSession]:
    """The session with the rule, with its settings as they were after each test."""
    for key, value in PATIENT.items():
        enabled_once.conf.set(key, value)
    # Hudi leaves it switched off, as tests/conftest.py says of the other session.
    enabled_once.conf.set("spark.sql.parquet.enableVectorizedReader", "true")
    yield enabled_once
    enabled_once.conf.unset("spark.hudi.index.enabled")


@pytest.fixture
def settings_of_both(
    spark: SparkSession, enabled: SparkSession
) -> Iterator[Callable[[str, str], None]]:
    """Sets something in both sessions until the end of the test."""
    before: dict[str, str | None] = {}

    def given(key: str, value: str) -> None:
        before.setdefault(key, spark.conf.get(key, None))
        for session in (spark, enabled):
            session.conf.set(key, value)

    yield given
    for key, value in before.items():
        for session in (spark, enabled):
            session.conf.unset(key) if value is None else session.conf.set(key, value)


@pytest.fixture
def no_metadata_table(settings_of_both: Callable[[str, str], None]) -> None:
    """Statements that write take a third of the time."""
    settings_of_both("hoodie.metadata.enable", "false")


@pytest.fixture
def costs(enabled_once: SparkSession) -> Iterator[Callable[..., None]]:
    """Sets some of the optimizer's cost constants until the end of the test."""
    with given_costs(enabled_once) as costs:
        yield costs


@pytest.fixture
def read_by_tasks(costs: Callable[..., None]) -> None:
    """Makes the index read every relation that it may read, and Spark tasks its rows."""
    costs(spark_scan_ms=1e12, handing_ms=1e9)


Query = Callable[[SparkSession], DataFrame]


@pytest.fixture
def agreed(
    spark: SparkSession, enabled: SparkSession, tables: Tables
) -> Callable[[str | Query], tuple[RelationUse, ...]]:
    """Runs a query with and without the rule, see `compared`."""
    return partial(compared, enabled, spark)


def compared(
    session: SparkSession, plain: SparkSession, query: str | Query
) -> tuple[RelationUse, ...]:
    """Runs a query in a session with the rule and in a plain one, compares rows, names, types and
    nullability, and returns how the relations were read."""
    found, expected = (
        each.sql(query) if isinstance(query, str) else query(each) for each in (session, plain)
    )
    assert found.schema == expected.schema, query
    assert rows_of(found) == rows_of(expected), query
    return last_queries(session)[-1]


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    """No rows can be read by index: "gone"."""

    def fail(self: RelationReader, *_: object) -> None:
        raise OSError("gone")

    monkeypatch.setattr(RelationReader, "rows", fail)


def rows_of(frame: DataFrame) -> list[str]:
    """A query's rows, sorted."""
    return sorted(map(repr, frame.collect()))


def each_of(groups: Mapping[Any, Sequence[str]]) -> list[tuple[str, Any]]:
    """Queries by what is expected of them, as cases of a test: each query with that."""
    return [(query, expected) for expected, queries in groups.items() for query in queries]


def by_index(uses: tuple[RelationUse, ...]) -> list[bool]:
    """For each relation of a query whether the index was used."""
    return [each.by_index for each in uses]


def without_ids(plan: str) -> str:
    """A plan as text, without the numbers that Spark gives to expressions and nodes."""
    return re.sub(r"#\d+L?|\[plan_id=\d+\]", "", plan)
