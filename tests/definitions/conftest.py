"""A small table, before any index and after a clustering, and a second index type."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import Settings
from hudi_index_service.index.factory import index_type
from tests.golden.table import Golden

PACKAGE = Path(__file__).parent / "sorted_values_package"

OpenCopy = Callable[[str], IndexedTable]


@pytest.fixture(scope="session")
def written(golden: Golden, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``plain``: 60 rows in two base files, one per partition. ``clustered``: the same with the
    index ``early`` on amount; then both files were clustered, and 2026-01-01's was upserted."""
    folder = tmp_path_factory.mktemp("definitions")
    table = golden("sixty_rows")
    table.put(folder / "plain", "written")
    clustered = table.put(folder / "clustered", "written")
    open_table(clustered).create_index("early", ["amount"])
    table.put(clustered)
    return folder


@pytest.fixture
def open_copy(written: Path, tmp_path: Path, settings: Settings) -> OpenCopy:
    """Copies a table of `written` for one test."""

    def copy(name: str) -> IndexedTable:
        return open_table(shutil.copytree(written / name, tmp_path / name), settings=settings)

    return copy


@pytest.fixture
def table(open_copy: OpenCopy) -> IndexedTable:
    return open_copy("plain")


@pytest.fixture
def sorted_values(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a second index type, from a package that is installed for the test."""
    monkeypatch.syspath_prepend(str(PACKAGE))
    yield "sorted"
    index_type.cache_clear()
