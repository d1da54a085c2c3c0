"""An index type that cannot work here, for lack of its distribution or of HBase's client, holds up
nothing else."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hudi_index_service import IndexedTable
from hudi_index_service.errors import BuildFailed, NativeModuleMissing
from hudi_index_service.hook.table_upkeep import TableUpkeep
from hudi_index_service.index.metadata.build_records import BuildState
from hudi_index_service.optimizer.plan import Access
from tests.index.plug_in import uninstalled
from tests.indexed import OwnTable

MISSING = "hbase needs the Python module (happybase|hudi_index_hbase), which is missing"


@pytest.fixture(params=["client", "distribution"])
def table(
    own_table: OwnTable, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[IndexedTable]:
    """A table with an index in HBase, defined where all that it needs was there, and one of
    btree."""
    table = own_table("four_base_files", ["id"], name="here", using="btree", build=False)
    table.create_index("in_hbase", ["id"], using="hbase")
    if request.param == "distribution":
        with uninstalled("hbase"):
            yield table
        return
    connection = "hudi_index_hbase.connection"  # imports the client
    monkeypatch.delitem(sys.modules, connection, raising=False)
    monkeypatch.delattr(connection, raising=False)
    monkeypatch.setitem(sys.modules, "happybase", None)
    yield table


def test_it_is_refused_when_it_is_defined(table: IndexedTable) -> None:
    for using in ("hbase", ["btree", "hbase"]):
        with pytest.raises(NativeModuleMissing, match=MISSING) as refused:
            table.create_index("other", ["id"], using=using)
        assert "pip install 'hudi-index-service[hbase]'" in refused.value.remedy
    assert [each.name for each in table.indexes()] == ["here", "in_hbase"]


def test_other_types_are_built(table: IndexedTable) -> None:
    build = table.build(strategy="all")
    assert {each.index_type for each in build.built} == {"btree"}
    assert len(build.built) == len(build.failed) == 4
    assert build.state is BuildState.FAILED
    with pytest.raises(BuildFailed, match=MISSING):
        build.raise_for_failures()
    plan = table.scan("id = '7'").explain().plan
    assert plan is not None
    assert plan.count(Access.SCAN) == 0
    assert len(table.status().failing) == 4
    with pytest.raises(NativeModuleMissing, match=MISSING):
        table.build(strategy="all")


def test_other_types_are_cleaned(table: IndexedTable) -> None:
    table.build(strategy="all")
    table.drop_index("here")
    with (
        TableUpkeep(table.uri, strategy="all", clean=True, defer_failed=False) as upkeep,
        pytest.raises(NativeModuleMissing, match=MISSING),
    ):
        upkeep.run()
    (unremoved,) = table.clean(grace_seconds=0).unremoved
    assert re.search(MISSING, unremoved.reason)
    assert not list(Path(table.uri, ".hoodie/.index/btree").rglob("*.json"))


def test_it_can_be_dropped(table: IndexedTable) -> None:
    table.build(strategy="all")
    dropped = table.drop_index("in_hbase", purge=True)
    assert [each.name for each in dropped.indexes] == ["in_hbase"]
    assert dropped.purge is not None
    assert dropped.purge.remaining == ()
    assert table.clean().unremoved == ()
    assert table.build(strategy="all").due == ()
