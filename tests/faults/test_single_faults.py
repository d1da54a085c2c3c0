"""Every storage call fails, one after another, in every way: afterwards every query gives Spark's
answer, the next run converges, and the sweep leaves the same files as after a run without faults.
"""

import re
import shutil
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import BuildSettings, Settings
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.hudi.table import HudiTable
from tests.faults.conftest import CopyState, State
from tests.faults.faulty_storage import (
    CHANGES,
    CREATES,
    DOWN,
    FAULTS,
    FILE_MISSING,
    HALF_WRITTEN,
    READS_ONE_FILE,
    Call,
    Fault,
    Gate,
    GatedStorage,
    Work,
    leave_half,
    numbered,
)
from tests.faults.invariants import (
    A_WHILE,
    SUMMARIES,
    Shape,
    age,
    check_answers,
    check_converged,
    shape,
)
from tests.faults.operations import OPERATIONS, Operation

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """One task at a time, so that the calls come in the same order in each run."""
    return Settings(
        cache_folder=tmp_path / "cache", build=BuildSettings(parallelism=1, memory_mb=16)
    )


def run_with_gate(
    path: Path, operation: Operation, settings: Settings, gate: Gate | None
) -> tuple[list[Call], Exception | None]:
    """Runs the operation through a gate; returns its calls and its exception."""
    storage = GatedStorage(path, gate, remote=operation.remote)
    raised: Exception | None = None
    try:
        with IndexedTable(HudiTable(storage), settings=settings) as table:
            operation.run(table)
    except Exception as error:  # noqa: BLE001 - which it may be is what is tested
        raised = error
    return storage.calls, raised


def settled(path: Path, operation: Operation, settings: Settings, state: State) -> list[str]:
    """Checks the answers, repeats the operation, and checks that all converges. Returns the files
    that remain below the index."""
    with open_table(path, settings=settings) as table:
        check_answers(table, state.expected)
        age(path, A_WHILE)
        operation.again(table)
        return check_converged(table, state.expected)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_call_fails(
    operation: Operation,
    states: dict[str, State],
    copy_state: CopyState,
    settings: Settings,
) -> None:
    state = states[operation.state]

    def fresh() -> Path:
        path = copy_state(operation.state)
        operation.prepare(path)
        return path

    path = fresh()
    copies: dict[str, Path] = {}
    gate = copies_at_changes(path, copy_state, copies)
    calls, raised = run_with_gate(path, operation, settings, gate)
    assert raised is None
    left_without_fault = settled(path, operation, settings, state)
    harmless = summary_calls(calls)
    known: set[Shape] = set()

    def check(path: Path, what: str, raised: Exception | None = None) -> None:
        """After faults that left the same state, the same follows."""
        try:
            left = shape(path)
            if left not in known:
                assert settled(path, operation, settings, state) == left_without_fault
                known.add(left)
        except BaseException as error:
            error.add_note(f"{operation.name}, {what}; it raised {raised!r}")
            raise
        shutil.rmtree(path)

    if operation.remote:  # otherwise it is made to fail on a local disk
        calls = [call for call in calls if call.operation in READS_ONE_FILE]
        copies.clear()
    for what, copy in copies.items():
        check(copy, what)
    for fault, call in faults_at(calls):
        path = fresh()
        gate = fault.gate(GatedStorage(path), numbered(call.number))
        made, raised = run_with_gate(path, operation, settings, gate)
        what = f"{fault.name} at {call}"
        check_error(raised, fault, struck(made, fault, call), harmless, what)
        check(path, what, raised)


def copies_at_changes(path: Path, copy_state: CopyState, made: dict[str, Path]) -> Gate:
    """A gate that keeps what a process leaves that ends at a call which changes something: how it
    ends → a copy of the table. One that ends before a read leaves the same as one that ends before
    its next change."""

    def gate(call: Call, work: Work) -> Any:
        for how, suffix in HALF_WRITTEN.items():
            if call.operation in (CHANGES if suffix is None else CREATES):
                copy = made[f"{how} at {call}"] = copy_state(path)
                if suffix is not None:
                    leave_half(copy, call, suffix)
        return work()

    return gate


def faults_at(calls: Sequence[Call]) -> Iterator[tuple[Fault, Call]]:
    """The faults of each call. Since only what has been changed has to be undone, a store is down
    from each change and from each first call after one."""
    for before, call in pairwise([None, *calls]):
        near = CHANGES & {call.operation, before.operation if before else "create"}
        yield from (
            (fault, call)
            for fault in FAULTS
            if call.operation in fault.hits and (near or fault is not DOWN)
        )


def struck(made: Sequence[Call], fault: Fault, planned: Call) -> Call:
    """The call that the fault began at: the planned one, unless threads ran in another order."""
    return next(
        each for each in made if each.number >= planned.number and each.operation in fault.hits
    )


def summary_calls(calls: Sequence[Call]) -> range:
    """The calls with which a build writes summaries, from the publication of all manifests until
    the build is recorded as finished: nothing depends on summaries."""
    created = [call for call in calls if call.operation == "create"]
    published = max((call.number for call in created if "/manifest-" in call.path), default=0)
    looked = [c.number for c in calls if SUMMARIES in c.path and c.number > published]
    finished = [c.number for c in created if c.path.endswith("/finished.json")]
    if not (published and looked and finished):
        return range(0)
    return range(looked[0], finished[-1])


def check_error(
    raised: Exception | None, fault: Fault, call: Call, harmless: range, what: str
) -> None:
    """A user sees one of the service's own errors, with a code and a remedy; only harmless failures
    raise nothing."""
    if raised is None:
        assert (
            HARMLESS.search(call.path)
            or (fault is FILE_MISSING and any(each in call.path for each in READ_AGAIN))
            or call.number in harmless
        ), what
    else:
        assert isinstance(raised, IndexServiceError), f"{what}: {raised!r}"
        assert raised.remedy, what


READ_AGAIN = ("/manifest-", SUMMARIES, ".hoodie/timeline/")
"""What may vanish while it is read: another generation, or another listing, takes its place. So do
commits that are archived."""

# Records that are only informative, whose failures are logged; segments, which builds and queries
# do without; and parts of an index: what one task cannot see of them, the next one does, and the
# sweep removes what remains.
HARMLESS = re.compile(
    r"/builds/\d+/(heartbeat|finished\.json|cancel\.json)$"
    r"|-part-\d+-of-\d+-"
    r"|/_service/segments/"
    r"|/lucene/\d+/[^/]+/[0-9a-f]{16}$"
)
