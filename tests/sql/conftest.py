"""A small Hudi table, written once, of which each test gets its own copy, by name and by path; and
three indexed tables for queries, which no test changes."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hudi_index_service import open_table
from hudi_index_service.config import settings
from hudi_index_service.optimizer.cost import Constants
from hudi_index_service.sql import IndexSession, enable
from tests.cost_constants import set_constants, unset_constants
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, timeline_folder, write
from tests.spark_session import PATIENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KINDS = ("cow", "partitioned", "merged")

_numbers = count(1)


@dataclass(frozen=True)
class Messages:
    """The table: 20 rows in two base files, one in each partition."""

    name: str
    path: Path


@pytest.fixture(scope="session")
def spark(spark: "SparkSession") -> "SparkSession":
    """A session of these tests' own: `IndexSession` lets its queries use the index."""
    own = spark.newSession()
    for key, value in PATIENT.items():
        own.conf.set(key, value)
    return own


@pytest.fixture(scope="session")
def session(spark: "SparkSession") -> IndexSession:
    return IndexSession(spark)


@pytest.fixture(scope="session")
def written(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql") / "messages"
    options = hudi_options("messages", partition_column="dt")
    write(numbered_rows(spark, 0, 20), path, options, "insert")
    return path


@pytest.fixture
def messages(spark: "SparkSession", written: Path, tmp_path: Path) -> Iterator[Messages]:
    table = Messages(f"messages_{next(_numbers)}", tmp_path / "messages")
    shutil.copytree(written, table.path)
    spark.sql(f"CREATE TABLE {table.name} USING hudi LOCATION '{table.path}'")
    yield table
    spark.sql(f"DROP TABLE {table.name}")


@dataclass(frozen=True)
class Tables:
    """Three indexed tables with the same 200 rows, named as in `KINDS`; in the last one, one of
    the two base files has log files."""

    folder: Path
    first_instant: str


@pytest.fixture(scope="session")
def tables(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tables]:
    folder = tmp_path_factory.mktemp("select")
    for kind in KINDS:
        path = folder / kind
        options = hudi_options(
            kind,
            "MERGE_ON_READ" if kind == "merged" else "COPY_ON_WRITE",
            partition_column=None if kind == "cow" else "dt",
            **NO_METADATA_TABLE,
        )
        write(numbered_rows(spark, 0, 200), path, options, "insert")
        if kind == "merged":
            write(numbered_rows(spark, 0, 20, 1).where("dt = '2026-01-01'"), path, options)
        with open_table(path) as table:
            table.create_index("i", ["id", "msg", "amount", "dt"])
            table.build(strategy="all").raise_for_failures()
        spark.sql(f"CREATE TABLE {kind} USING hudi LOCATION '{path}'")
        view = "CREATE TEMP VIEW {t}_view AS SELECT id AS k, amount * 2 AS twice, * FROM {t}"
        spark.sql(view.format(t=kind))
    instants = sorted(
        each.name[:17] for each in timeline_folder(folder / "merged").glob("[0-9]*_*.deltacommit")
    )
    yield Tables(folder, instants[0])
    for kind in KINDS:
        spark.sql(f"DROP VIEW {kind}_view")
        spark.sql(f"DROP TABLE {kind}")


@pytest.fixture(scope="session")
def index_session(spark: "SparkSession") -> Iterator[IndexSession]:
    session = IndexSession(spark)
    yield session
    session.close()


@pytest.fixture
def costs(spark: "SparkSession") -> Iterator[Callable[..., None]]:
    """Sets some of the optimizer's cost constants until the end of the test. Decisions that other
    tests have asked for are forgotten."""

    def set_milliseconds(**milliseconds: float) -> None:
        set_constants(settings(), Constants(**milliseconds))
        enable(spark)

    yield set_milliseconds
    unset_constants(settings())
    enable(spark)


@pytest.fixture
def read_by_tasks(costs: Callable[..., None]) -> None:
    """Makes the index read every relation that it may read, and Spark tasks its rows."""
    costs(spark_scan_ms=1e12, handing_ms=1e9)


@pytest.fixture
def agreed(
    spark: "SparkSession", tables: Tables, index_session: IndexSession
) -> Callable[..., list[bool]]:
    """Runs a query with and without the index, compares the results, and returns for each relation
    whether the index was used."""

    def run(query: str, args: object = None, **kwargs: object) -> list[bool]:
        frame = index_session.sql(query, args, **kwargs)
        rows = rows_of(frame)
        with plain_spark(spark):
            plain = spark.sql(query, args, **kwargs)
            assert frame.schema == plain.schema
            assert rows == rows_of(plain)
        return [each.by_index for each in index_session.relations]

    return run


@contextmanager
def plain_spark(spark: "SparkSession") -> Iterator[None]:
    """Leaves all queries to Spark during the block."""
    spark.conf.set("spark.hudi.index.enabled", "false")
    try:
        yield
    finally:
        spark.conf.unset("spark.hudi.index.enabled")


def rows_of(frame: "DataFrame") -> list[str]:
    """A query's rows, sorted."""
    return sorted(map(repr, frame.collect()))
