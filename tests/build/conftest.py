"""Tables that Hudi wrote once; every test works on its own copy."""

import pytest

from hudi_index_service import IndexedTable
from tests.indexed import OwnTable

EARLY = {"columns": ["msg", "amount"], "name": "early", "defined": "written", "build": False}


@pytest.fixture
def cow(own_table: OwnTable) -> IndexedTable:
    """Two partitions, clustered after the index ``early`` was defined; then the even ids' partition
    was rewritten by a plain upsert. Nothing is built."""
    return own_table("clustered_then_upserted", **EARLY)


@pytest.fixture
def mor(own_table: OwnTable) -> IndexedTable:
    """Not partitioned; base file, the index ``early``, log file, compacted; then another log
    file. Nothing is built."""
    return own_table("compacted_then_updated", **EARLY)
