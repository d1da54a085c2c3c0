"""One real table; every test works on a copy of its own."""

import shutil
from pathlib import Path

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import Settings
from tests.golden.table import Golden


@pytest.fixture(scope="session")
def written(golden: Golden, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Merge on read, a base file in each of two partitions; the index ``by_amount``; then the even
    ids' partition compacted. The other partition's base file has a log file on top of it."""
    table = golden("half_compacted")
    path = table.put(tmp_path_factory.mktemp("status"), "written")
    open_table(path).create_index("by_amount", ["amount"])
    return table.put(path)


@pytest.fixture
def table(written: Path, tmp_path: Path) -> IndexedTable:
    path = shutil.copytree(written, tmp_path / "status")
    return open_table(path, settings=Settings(cache_folder=tmp_path / "cache"))
