"""A small table, written once, before any index and after a clustering; a second index type."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import Settings
from hudi_index_service.index.factory import index_type
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, run_clustering, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGE = Path(__file__).parent / "sorted_values_package"

OpenCopy = Callable[[str], IndexedTable]


@pytest.fixture(scope="session")
def written(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``plain``: 60 rows in two base files, one in each partition. ``clustered``: the same with the
    index ``early`` on amount; both files clustered since, then 2026-01-01's by an upsert."""
    folder = tmp_path_factory.mktemp("definitions")
    plain, clustered = folder / "plain", folder / "clustered"
    options = hudi_options("plain", partition_column="dt", **NO_METADATA_TABLE)
    write(numbered_rows(spark, 0, 60).coalesce(1), plain, options, "bulk_insert", mode="overwrite")
    shutil.copytree(plain, clustered)
    open_table(clustered).create_index("early", ["amount"])
    run_clustering(spark, clustered)
    even = numbered_rows(spark, 0, 60, version=1).where("dt = '2026-01-01'")
    write(even, clustered, options)
    return folder


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(cache_folder=tmp_path / "cache", clean={"grace_seconds": 0})


@pytest.fixture
def open_copy(written: Path, tmp_path: Path, settings: Settings) -> OpenCopy:
    """A table of `written` for this test alone."""

    def copy(name: str) -> IndexedTable:
        return open_table(shutil.copytree(written / name, tmp_path / name), settings=settings)

    return copy


@pytest.fixture
def table(open_copy: OpenCopy) -> IndexedTable:
    return open_copy("plain")


@pytest.fixture
def sorted_values(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a second index type, of a package that is installed for the test."""
    monkeypatch.syspath_prepend(str(PACKAGE))
    yield "sorted"
    index_type.cache_clear()
