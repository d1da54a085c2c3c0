"""Queries while the store fails at any call: the right answer or an error, and always the right
answer if only the index cannot be read."""

from pathlib import Path

import pytest

from hudi_index_service import IndexedTable
from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.hudi.table import HudiTable
from tests.faults.conftest import CopyState, State
from tests.faults.faulty_storage import DOWN, FILE_MISSING, REFUSED, Call, Fault, Gate, GatedStorage
from tests.faults.invariants import INDEX

pytestmark = pytest.mark.timeout(1200)

WHERE = "msg = 'Buying car 3' AND amount < 90"


def query(path: Path, gate: Gate | None, remote: bool, cache: Path) -> list[Call]:
    """Opens the table and queries rows and then their number. Returns the calls."""
    storage = GatedStorage(path, gate, remote=remote)
    settings = Settings(cache_folder=cache, read=ReadSettings(parallelism=1))
    with IndexedTable(HudiTable(storage), settings=settings) as table:
        scan = table.scan(WHERE, columns=["id"])
        assert sorted(scan.to_arrow()["id"].to_pylist()) == ["10", "17", "24", "3"]
        assert scan.count() == 4
    return storage.calls


@pytest.mark.parametrize("remote", [False, True], ids=["local", "remote"])
@pytest.mark.parametrize("fault", [REFUSED, DOWN, FILE_MISSING], ids=lambda fault: fault.name)
def test_every_call_of_a_query_fails(
    fault: Fault, remote: bool, states: dict[str, State], copy_state: CopyState, tmp_path: Path
) -> None:
    calls = query(copy_state("indexed"), None, remote, tmp_path / "cache")
    assert any(call.path.endswith(".json") for call in calls)
    assert remote == any(call.operation == "download" for call in calls)
    for call in calls:
        if call.operation not in fault.hits:
            continue
        path = copy_state("indexed")
        gate = fault.gate(GatedStorage(path), call.same)
        raised: BaseException | None = None
        try:
            query(path, gate, remote, tmp_path / f"cache-{call.number}")
        except IndexServiceError as error:
            raised = error
        except BaseException as error:
            error.add_note(f"{fault.name} at {call}")
            raise
        if raised is not None:
            assert fault is DOWN or not call.path.startswith(INDEX), (call, raised)
