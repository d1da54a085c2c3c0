"""Real tables, written once; every test works on a copy of its own."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import Settings
from tests.hudi_tables import hudi_options, numbered_rows, run_clustering, run_compaction, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CopyTable = Callable[[str], Path]


@pytest.fixture(scope="session")
def written(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables `cow` and `mor`, each with the index ``early`` on msg and amount, defined after
    the first write and never built.

    cow: two partitions, clustered, then the even ids' partition rewritten by a plain upsert.
    mor: not partitioned; base file, log file, compacted; then another log file.
    """
    folder = tmp_path_factory.mktemp("written")
    cow, mor = folder / "cow", folder / "mor"
    options = hudi_options("cow", partition_column="dt")
    write(numbered_rows(spark, 0, 100), cow, options, "bulk_insert", mode="overwrite")
    open_table(cow).create_index("early", ["msg", "amount"])
    run_clustering(spark, cow)
    write(numbered_rows(spark, 0, 100, version=1).where("amount % 2 = 1"), cow, options)

    options = hudi_options("mor", "MERGE_ON_READ")
    one_file = numbered_rows(spark, 0, 100).coalesce(1)
    write(one_file, mor, options, "bulk_insert", mode="overwrite")
    open_table(mor).create_index("early", ["msg", "amount"])
    write(numbered_rows(spark, 0, 10, version=1), mor, options)
    run_compaction(spark, mor)
    write(numbered_rows(spark, 90, 100, version=2), mor, options)
    return folder


@pytest.fixture
def copy_table(written: Path, tmp_path: Path) -> CopyTable:
    """A table of `written` for this test alone: the index lies at paths relative to it."""

    def copy(name: str) -> Path:
        return Path(shutil.copytree(written / name, tmp_path / name))

    return copy


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(cache_folder=tmp_path / "cache")


@pytest.fixture
def cow(copy_table: CopyTable, settings: Settings) -> IndexedTable:
    return open_table(copy_table("cow"), settings=settings)


@pytest.fixture
def mor(copy_table: CopyTable, settings: Settings) -> IndexedTable:
    return open_table(copy_table("mor"), settings=settings)
