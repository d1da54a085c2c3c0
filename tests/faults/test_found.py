"""Regressions found by the other tests in this folder, reproduced one by one."""

from pathlib import Path

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.errors import BuildInProgress, IndexNotFound, SnapshotChanged
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.metadata import build_records
from hudi_index_service.index.metadata.build_records import BuildRecords
from tests.faults.conftest import CopyState
from tests.faults.faulty_storage import FILE_MISSING, Call, GatedStorage, Work
from tests.faults.invariants import A_WHILE, INDEX, age

pytestmark = pytest.mark.timeout(1200)


def test_builds_that_start_in_the_same_millisecond_do_not_share_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store's client takes identical content under a name for its own write, and would have done
    so for both threads of a process."""
    monkeypatch.setattr(build_records, "utc_now", lambda: "2026-01-01T00:00:00.000+00:00")

    def start_another_after_the_listing(call: Call, work: Work) -> object:
        found = work()
        if call.operation == "files":
            BuildRecords(GatedStorage(tmp_path, remote=True), stale_seconds=60).start({})
        return found

    late = GatedStorage(tmp_path, start_another_after_the_listing, remote=True)
    with pytest.raises(BuildInProgress, match="at the same moment"):
        BuildRecords(late, stale_seconds=60).start({})


def test_definition_deleted_while_read_does_not_cause_cleaning(
    copy_state: CopyState,
) -> None:
    path = copy_state("indexed")
    age(path, A_WHILE)
    before = sorted((path / INDEX / "lucene").rglob("*"))

    def gate(call: Call, work: Work) -> object:
        if call.operation == "read" and "definitions/early" in call.path:
            return FILE_MISSING.strike(storage, call, work)
        return work()

    storage = GatedStorage(path, gate)
    with pytest.raises(SnapshotChanged, match=r"early-0001.json was deleted"):
        IndexedTable(HudiTable(storage)).clean(grace_seconds=0)
    assert sorted((path / INDEX / "lucene").rglob("*")) == before


def test_half_written_definition_is_named_and_can_be_recreated(copy_state: CopyState) -> None:
    path = copy_state("indexed")
    half = path / INDEX / "_service/definitions/early-0002.json"
    half.write_bytes(b'{\n "checksum": "sha256:')
    table = open_table(path)

    with pytest.raises(IndexNotFound, match=r"early-0002.json, which defines") as raised:
        table.drop_index("early")
    assert "create the index again" in raised.value.remedy
    table.create_index("early", ["msg", "amount"])
    table.drop_index("early", purge=True)
    assert [each.name for each in table.indexes()] == ["keys"]
