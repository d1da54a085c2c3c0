"""A table of awkward values with an index, and the same rows as plain Parquet."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hudi_index_service import IndexedTable, open_table
from tests.engines.drawn_values import COLUMNS, Values
from tests.read.by_pages import BY_PAGES

NAME = "awkward_half_clustered"


@pytest.fixture(scope="session")
def plain(golden, tmp_path_factory) -> Path:
    """The rows that Spark read, as one file of Parquet."""
    path = tmp_path_factory.mktemp("plain") / "rows.parquet"
    pq.write_table(golden(NAME).rows(), path)
    return path


@pytest.fixture(scope="session")
def values(golden) -> Values:
    """Literals for the rows."""
    return Values(golden(NAME).rows())


@pytest.fixture(scope="session")
def path(golden, tmp_path_factory) -> Path:
    """Three partitions, one of which was written after the index was built: not to be changed."""
    path = golden(NAME).put(tmp_path_factory.mktemp("engines") / "table", "written")
    with open_table(path) as table:
        table.create_index("all_columns", COLUMNS, using="btree")
        golden(NAME).put(path, "clustered")
        table.build().raise_for_failures()
    return golden(NAME).put(path)


@pytest.fixture
def table(path) -> Iterator[IndexedTable]:
    """The table; its rows are read by page."""
    with open_table(path, settings=BY_PAGES) as table:
        yield table
