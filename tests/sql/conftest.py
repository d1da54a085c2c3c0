"""A small Hudi table, written once; each test gets a copy of its own, by name and by path."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hudi_index_service.sql import IndexSession
from tests.hudi_tables import hudi_options, numbered_rows, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_numbers = count(1)


@dataclass(frozen=True)
class Messages:
    """The table: 20 rows in two base files, one in each partition."""

    name: str
    path: Path


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
