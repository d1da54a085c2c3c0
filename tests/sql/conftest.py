"""A small Hudi table, written once, of which each test gets its own copy, by name and by path."""

import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudi_index_service.sql import IndexSession
from tests.cost_constants import given_costs
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, write
from tests.spark_session import PATIENT

_numbers = count(1)


@pytest.fixture(scope="session")
def spark(spark: SparkSession) -> SparkSession:
    """A session of these tests' own: `IndexSession` lets its queries use the index."""
    own = spark.newSession()
    for key, value in PATIENT.items():
        own.conf.set(key, value)
    return own


@pytest.fixture(scope="session")
def session(spark: SparkSession) -> Iterator[IndexSession]:
    session = IndexSession(spark)
    yield session
    session.close()


@pytest.fixture(scope="session")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql") / "messages"
    options = hudi_options("messages", partition_column="dt", **NO_METADATA_TABLE)
    write(numbered_rows(spark, 0, 20), path, options, "insert")
    return path


@pytest.fixture
def messages(spark: SparkSession, written: Path, tmp_path: Path) -> Iterator[Path]:
    """The table's folder, which has its name: 20 rows in two base files, one in each partition."""
    table = shutil.copytree(written, tmp_path / f"messages_{next(_numbers)}")
    spark.sql(f"CREATE TABLE {table.name} USING hudi LOCATION '{table}'")
    yield table
    spark.sql(f"DROP TABLE {table.name}")


@pytest.fixture
def read_by_tasks(spark: SparkSession) -> Iterator[None]:
    """Makes the index read every relation that it may read, and Spark tasks its rows."""
    with given_costs(spark) as costs:
        costs(spark_scan_ms=1e12, handing_ms=1e9)
        yield
