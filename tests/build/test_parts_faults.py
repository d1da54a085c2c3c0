"""A build in parts whose storage fails at any one call: the next build converges."""

from contextlib import suppress
from pathlib import Path

import pytest

from hudi_index_service.build.entry.task import BuildTask, TaskOutcome, TaskStatus, run_task
from hudi_index_service.build.executor import Schedule
from hudi_index_service.index.metadata.entry import EntryListing
from hudi_index_service.storage.store import Storage
from tests.build.base_files import build_task, numbered_rows, write_base_file
from tests.faults.faulty_storage import FAULTS, Call, Fault, GatedStorage, Killed, numbered

ROWS = numbered_rows(40).select(["id", "sender"])


def task_on(root: Path) -> BuildTask:
    """A task for a new base file below a new root."""
    root.mkdir()
    storage = Storage(root)
    return build_task(storage, write_base_file(storage, ROWS), ROWS.schema)


def run_in_parts(task: BuildTask) -> TaskOutcome | None:
    """Runs both parts in turn; returns the outcome of the base file."""
    schedule = Schedule([task], slots=2)
    found = [schedule.ended(at, run_task(part)) for at, part in enumerate(schedule.tasks)]
    for part in schedule.undecided().tasks:
        found.append(run_task(part))
    schedule.give_up()
    return next((outcome for outcome in found if outcome is not None), None)


@pytest.mark.parametrize("remote", [False, True], ids=["local", "remote"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_next_build_converges_after_a_fault_at_any_call(
    tmp_path: Path, fault: Fault, remote: bool
) -> None:
    calls = calls_of_a_build(tmp_path / "counted", remote)
    assert sum(call.operation == "upload" for call in calls) == 3, "two parts and their result"

    for call in calls:
        if call.operation not in fault.hits:
            continue
        task = task_on(tmp_path / str(call.number))
        storage = GatedStorage(task.storage.uri, remote=remote)
        storage.gate = fault.gate(task.storage, numbered(call.number))

        with suppress(Killed):
            run_in_parts(build_task(storage, task.due.base_file, ROWS.schema))

        again = run_in_parts(task)
        assert again is not None
        assert again.status in (TaskStatus.BUILT, TaskStatus.PRESENT), str(call)
        manifest = EntryListing(task.storage, "lucene").find(task.due.base_file).manifest
        assert manifest.base_file.rows == 40


def calls_of_a_build(root: Path, remote: bool) -> list[Call]:
    task = task_on(root)
    storage = GatedStorage(root, remote=remote)
    outcome = run_in_parts(build_task(storage, task.due.base_file, ROWS.schema))
    assert outcome is not None
    assert outcome.status is TaskStatus.BUILT
    return storage.calls
