"""A small table, before any index and after a clustering, and an index type of another package."""

import pytest

from hudi_index_service import IndexedTable
from tests.index.conftest import copied_columns as copied  # noqa: F401 - a fixture
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
