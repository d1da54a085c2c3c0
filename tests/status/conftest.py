"""One real table, written once; every test works on a copy of its own."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import Settings
from tests.hudi_tables import (
    NO_METADATA_TABLE,
    hudi_options,
    numbered_rows,
    run_compaction,
    write,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def written(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Merge on read, a base file in each of two partitions; the index ``by_amount``; then the even
    ids' partition compacted. A log file lies above the other partition's base file."""
    path = tmp_path_factory.mktemp("status") / "status"
    options = hudi_options("status", "MERGE_ON_READ", partition_column="dt", **NO_METADATA_TABLE)
    write(numbered_rows(spark, 0, 40).coalesce(1), path, options, "bulk_insert", mode="overwrite")
    open_table(path).create_index("by_amount", ["amount"])
    write(numbered_rows(spark, 0, 40, version=1).where("id = '2'"), path, options)
    run_compaction(spark, path)
    write(numbered_rows(spark, 0, 40, version=2).where("id = '3'"), path, options)
    return path


@pytest.fixture
def table(written: Path, tmp_path: Path) -> IndexedTable:
    path = shutil.copytree(written, tmp_path / "status")
    return open_table(path, settings=Settings(cache_folder=tmp_path / "cache"))
