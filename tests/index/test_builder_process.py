"""Which process runs a build, and when its end is certain."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_index_service.errors import BuildInProgress
from hudi_index_service.index.metadata.build_records import BuildRecords, BuildState
from hudi_index_service.index.metadata.builder_process import BuilderProcess
from hudi_index_service.storage.store import Storage
from tests.programs import Running

PRINT_PROCESS = """
import json, sys
from hudi_index_service.index.metadata.builder_process import BuilderProcess
print(json.dumps(BuilderProcess.current().to_dict()), flush=True)
sys.stdin.read()
"""

START_A_BUILD = """
import sys
from hudi_index_service.index.metadata.build_records import BuildRecords
from hudi_index_service.storage.store import Storage
BuildRecords(Storage(sys.argv[1]), stale_seconds=600).start({})
print("started", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def other(running: Running) -> "subprocess.Popen[str]":
    """Another process, which lives until it is killed."""
    return running(PRINT_PROCESS)


def process_of(process: subprocess.Popen[str]) -> BuilderProcess:
    assert process.stdout is not None
    named = BuilderProcess.from_dict(json.loads(process.stdout.readline()))
    assert named is not None, "this system's /proc has all that is needed"
    return named


def test_a_killed_process_is_gone(other: subprocess.Popen[str]) -> None:
    builder = process_of(other)
    assert builder.pid == other.pid
    assert not builder.is_gone()

    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
    assert builder.is_gone(), "a zombie that has not been reaped"
    other.wait()
    assert builder.is_gone()


def test_a_reused_process_id_is_recognized(other: subprocess.Popen[str]) -> None:
    builder = process_of(other)
    assert builder.process_started is not None

    assert replace(builder, process_started=builder.process_started - 1).is_gone()
    own = BuilderProcess.current()
    assert own.process_started is not None
    assert not own.is_gone()
    assert replace(own, process_started=own.process_started - 1).is_gone()


@pytest.mark.parametrize(
    "change",
    [
        {"host": "another-host"},
        {"boot_id": "11111111-2222-3333-4444-555555555555"},
        {"pid_namespace": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_process_of_another_system_is_never_known_to_be_gone(
    other: subprocess.Popen[str], change: dict[str, object]
) -> None:
    """A container with this host's name, or the same container before a restart."""
    builder = process_of(other)
    other.kill()
    other.wait()
    assert builder.is_gone()
    assert not replace(builder, **change).is_gone()


def test_an_incomplete_process_record_is_ignored() -> None:
    whole = BuilderProcess.current().to_dict()
    assert set(whole) == {"host", "pid", "boot_id", "pid_namespace", "process_started"}
    for key in whole:
        assert BuilderProcess.from_dict({**whole, key: None}) is None
        assert BuilderProcess.from_dict({**whole, key: [1]}) is None
    assert BuilderProcess.from_dict({**whole, "pid": -1}) is None
    assert BuilderProcess.from_dict({}) is None


def test_the_build_of_a_killed_process_is_dead_at_once(tmp_path: Path, running: Running) -> None:
    records = BuildRecords(Storage(tmp_path), stale_seconds=600)
    builder = running(START_A_BUILD, tmp_path)
    assert builder.stdout is not None
    assert builder.stdout.readline() == "started\n"
    assert records.living() == {"000001"}
    with pytest.raises(BuildInProgress, match=rf"process {builder.pid}\)"):
        records.start({})
    builder.kill()
    builder.wait()

    assert [each.state for each in records.all()] == [BuildState.DEAD]
    assert records.living() == frozenset()
    assert records.request_cancel() is None
    assert records.start({}).id == "000002"


def test_a_build_of_this_process_ends_with_its_context(tmp_path: Path) -> None:
    """Even if its last record could not be written, for instance because the disk was full."""
    records = BuildRecords(Storage(tmp_path), stale_seconds=600)
    with records.start({}):
        with pytest.raises(BuildInProgress):
            records.start({})
        assert records.living() == {"000001"}

    assert [each.state for each in records.all()] == [BuildState.DEAD]
    with pytest.raises(ZeroDivisionError), records.start({}):
        raise ZeroDivisionError
    assert records.start({}).id == "000003"
