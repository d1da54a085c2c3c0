"""Tables that Hudi wrote once; every test works on its own copy."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import Settings
from tests.golden.table import Golden

CopyTable = Callable[[str], Path]


@pytest.fixture(scope="session")
def written(golden: Golden, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables `cow` and `mor`, each with the index ``early`` on msg and amount, defined after
    the first write and never built.

    cow: two partitions, clustered, then the even ids' partition rewritten by a plain upsert.
    mor: not partitioned; base file, log file, compacted; then another log file.
    """
    folder = tmp_path_factory.mktemp("written")
    for name, history in (("cow", "clustered_then_upserted"), ("mor", "compacted_then_updated")):
        path = golden(history).put(folder / name, "written")
        open_table(path).create_index("early", ["msg", "amount"])
        golden(history).put(path)
    return folder


@pytest.fixture
def copy_table(written: Path, tmp_path: Path) -> CopyTable:
    """Copies a table of `written` for one test; the index's paths are relative to it."""

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
