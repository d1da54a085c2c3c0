"""What the other tests here came upon, each by itself."""

from pathlib import Path

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.build import record
from hudi_index_service.build.record import BuildRecords
from hudi_index_service.errors import BuildInProgress, IndexNotFound, SnapshotChanged
from hudi_index_service.table.hudi_rs import HudiRsTable
from tests.faults.conftest import CopyState
from tests.faults.faulty_storage import FILE_GONE, Call, GatedStorage, Work
from tests.faults.invariants import A_WHILE, INDEX, age

pytestmark = pytest.mark.timeout(1200)


def test_two_builds_that_start_in_the_same_millisecond(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store's client takes what stands under a name byte for byte for its own; both threads of a
    process would have."""
    monkeypatch.setattr(record, "_now", lambda: "2026-01-01T00:00:00.000+00:00")

    def looks_before_the_other_starts(call: Call, work: Work) -> object:
        found = work()
        if call.operation == "files":
            BuildRecords(GatedStorage(tmp_path, remote=True), stale_seconds=60).start({})
        return found

    late = GatedStorage(tmp_path, looks_before_the_other_starts, remote=True)
    with pytest.raises(BuildInProgress, match="at the same moment"):
        BuildRecords(late, stale_seconds=60).start({})


def test_a_definition_that_goes_while_it_is_read_is_no_reason_to_clean(
    copy_state: CopyState,
) -> None:
    path = copy_state("indexed")
    age(path, A_WHILE)
    before = sorted((path / INDEX / "lucene").rglob("*"))

    def gate(call: Call, work: Work) -> object:
        if call.operation == "read" and "definitions/early" in call.path:
            return FILE_GONE.strike(storage, call, work)
        return work()

    storage = GatedStorage(path, gate)
    with pytest.raises(SnapshotChanged, match=r"early-0001.json went"):
        IndexedTable(HudiRsTable(storage)).clean(grace_seconds=0)
    assert sorted((path / INDEX / "lucene").rglob("*")) == before


def test_a_definition_lost_half_written_is_named_and_mended(copy_state: CopyState) -> None:
    path = copy_state("indexed")
    half = path / INDEX / "_service/definitions/early-0002.json"
    half.write_bytes(b'{\n "checksum": "sha256:')
    table = open_table(path)

    with pytest.raises(IndexNotFound, match=r"early-0002.json, which defines") as raised:
        table.drop_index("early")
    assert "make the index again" in raised.value.remedy
    table.create_index("early", ["msg", "amount"])
    table.drop_index("early", purge=True)
    assert [each.name for each in table.indexes()] == ["keys"]
