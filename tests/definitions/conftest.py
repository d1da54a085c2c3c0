"""A small table, before any index and after a clustering, and an index type of another package."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hudi_index_service import IndexedTable
from hudi_index_service.index.factory import index_type
from tests.index.plug_in import COPIED_COLUMNS, install
from tests.indexed import OwnTable


@pytest.fixture
def table(own_table: OwnTable) -> IndexedTable:
    """60 rows in two base files, one per partition."""
    return own_table("sixty_rows", step="written")


@pytest.fixture
def clustered(own_table: OwnTable) -> IndexedTable:
    """The same with the index ``early`` on amount; then both files were clustered, and
    2026-01-01's was upserted."""
    return own_table("sixty_rows", ["amount"], name="early", defined="written", build=False)


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The name of an index type from a package that is installed for the test."""
    packages = tmp_path / "site-packages"
    packages.mkdir()
    install(packages, "copied", COPIED_COLUMNS, class_name="CopiedColumns")
    monkeypatch.syspath_prepend(str(packages))
    yield "copied"
    index_type.cache_clear()
