"""Builders that race, die, lack permissions or find the table changed: entries stay consistent."""

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.build.entry import indexing
from hudi_index_service.build.entry.task import BuildTask, TaskOutcome, TaskStatus, run_task
from hudi_index_service.build.reconcile import DueEntry
from hudi_index_service.index.contract import ColumnSpec
from hudi_index_service.index.factory import index_type
from hudi_index_service.storage.store import Storage
from tests.at_once import at_once
from tests.build.conftest import EARLY
from tests.build.entries import (
    all_manifests,
    assert_no_stray_data,
    columns,
    data_files,
    manifests,
)
from tests.indexed import GoldenIndex
from tests.programs import ended, lines_of


def task(table: IndexedTable, names: list[str], build_id: str = "000001") -> BuildTask:
    """A task for the base file of the first partition with the given columns."""
    due = table.build(strategy="all", partitions=["2026-01-01"], dry_run=True).due[0]
    schema, kind = table.schema(), index_type("lucene")
    specs = tuple(
        ColumnSpec(name, schema.field(name).type, kind.fields(name, schema.field(name).type, {}))
        for name in names
    )
    wanted = DueEntry(due.base_file, "lucene", specs, {"of_" + "_".join(names): "0"})
    return BuildTask(Storage(table.uri), wanted, build_id, memory_mb=16, batch_rows=1000)


def test_racing_builders_lose_no_column(cow: IndexedTable) -> None:
    wanted = [["id"], ["amount"], ["msg", "ts"], ["ts", "id"]]
    tasks = [task(cow, names, f"{i:06}") for i, names in enumerate(wanted)]

    outcomes = at_once(*(partial(run_task, each) for each in tasks))

    assert {outcome.status for outcome in outcomes} <= {TaskStatus.BUILT, TaskStatus.PRESENT}
    (manifest,) = manifests(cow.uri)
    assert columns(manifest) == ["amount", "id", "msg", "ts"]
    # A builder that found its columns already there had nothing to publish.
    assert set(manifest.definitions) >= {"of_amount", "of_msg_ts"}
    assert len(all_manifests(cow.uri)) == manifest.generation
    assert_no_stray_data(cow.uri)


def test_racing_builders_of_the_same_columns_publish_once(cow: IndexedTable) -> None:
    outcomes = at_once(*[partial(run_task, task(cow, ["id"]))] * 4)

    assert sorted(each.status.value for each in outcomes) == [
        "built",
        "present",
        "present",
        "present",
    ]
    assert len(all_manifests(cow.uri)) == 1
    assert_no_stray_data(cow.uri)


def test_a_base_file_cleaned_since_planning_is_gone_without_an_error(cow: IndexedTable) -> None:
    build_task = task(cow, ["id"])
    Path(cow.uri, build_task.due.base_file.path).unlink()

    outcome = run_task(build_task)

    assert (outcome.status, outcome.error) == (TaskStatus.GONE, None)
    assert data_files(cow.uri) == []


def test_another_missing_file_fails_the_task(
    cow: IndexedTable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    build_task = task(cow, ["id"])
    monkeypatch.setattr(indexing, "SMALL_BYTES", 0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))

    outcome = run_task(build_task)

    assert outcome.status is TaskStatus.FAILED
    assert outcome.error is not None
    assert "absent" in outcome.error


def test_a_small_base_file_needs_no_temporary_files(
    cow: IndexedTable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    build_task = task(cow, ["id", "msg"])
    in_memory = run_task(build_task)
    (in_memory_members,) = [each.data.members for each in manifests(cow.uri)]
    shutil.rmtree(Path(cow.uri, ".hoodie/.index/lucene"))
    monkeypatch.setattr(indexing, "SMALL_BYTES", 0)
    on_disk = run_task(build_task)
    (on_disk_members,) = [each.data.members for each in manifests(cow.uri)]
    assert replace(in_memory, seconds=0) == replace(on_disk, seconds=0)
    assert in_memory_members == on_disk_members

    monkeypatch.setattr(indexing, "SMALL_BYTES", 2**20)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    shutil.rmtree(Path(cow.uri, ".hoodie/.index/lucene"))
    assert run_task(build_task).status is TaskStatus.BUILT


def test_a_column_of_an_incompatible_type_fails_the_task_if_it_is_the_only_one(
    cow: IndexedTable,
) -> None:
    build_task = task(cow, ["id", "msg"])
    id_spec, msg = sorted(build_task.due.columns, key=lambda spec: spec.name)
    wrong = replace(msg, type=cow.schema().field("amount").type, fields=("number",))

    def run(*specs: ColumnSpec) -> TaskOutcome:
        return run_task(replace(build_task, due=replace(build_task.due, columns=specs)))

    outcome = run(wrong)
    assert outcome.status is TaskStatus.FAILED
    assert outcome.error is not None
    assert "holds column msg as string" in outcome.error
    assert data_files(cow.uri) == []

    outcome = run(id_spec, wrong)
    assert outcome.status is TaskStatus.BUILT
    assert "holds column msg as string" in outcome.skipped["msg"]


# The code is unmodified: a profiler kills the process when Storage.create is called for a manifest.
BUILD_AND_DIE = """
import os, signal, sys, threading
from pathlib import Path
from hudi_index_service import open_table
from hudi_index_service.config import Settings
from hudi_index_service.storage.store import Storage

def watch(frame, event, argument):
    if event == "call" and frame.f_code is Storage.create.__code__:
        if "/manifest-" in frame.f_locals["path"]:
            os.kill(os.getpid(), signal.SIGKILL)

threading.setprofile(watch)
open_table(sys.argv[1], settings=Settings(cache_folder=Path(sys.argv[2]))).build(strategy="all")
"""


def test_a_build_killed_before_its_manifest_leaves_no_entry(
    cow: IndexedTable, tmp_path: Path
) -> None:
    killed = ended(BUILD_AND_DIE, cow.uri, tmp_path / "cache")
    assert killed.returncode == -9, killed.stderr
    assert len(data_files(cow.uri)) > 0
    assert all_manifests(cow.uri) == []

    assert cow.scan("amount = 3").count() == 1
    assert [status.covered for status in cow.status()] == [0]
    assert [record.state for record in cow.builds()] == ["dead"]

    # Its heartbeat is recent, but its process is gone, so the next build need not wait.
    assert len(cow.build(strategy="all").built) == 2
    assert [status.covered for status in cow.status()] == [2]
    assert len(data_files(cow.uri)) > 2, "the cleaner will remove the others"


# Files cannot grow for a while, as on a full disk: the record has only the start of the build.
BUILD_ON_A_FULL_DISK_AND_AGAIN = """
import resource, sys
from pathlib import Path
from hudi_index_service import open_table
from hudi_index_service.config import Settings
table = open_table(sys.argv[1], settings=Settings(cache_folder=Path(sys.argv[2])))
resource.setrlimit(resource.RLIMIT_FSIZE, (700, resource.RLIM_INFINITY))
print(len(table.build(strategy="all").failed), [each.state.value for each in table.builds()])
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(len(table.build(strategy="all").built), [each.state.value for each in table.builds()])
"""


def test_a_process_does_not_wait_for_its_own_failed_build(
    cow: IndexedTable, tmp_path: Path
) -> None:
    lines = lines_of(BUILD_ON_A_FULL_DISK_AND_AGAIN, cow.uri, tmp_path / "cache")
    assert lines == ["2 ['dead']", "2 ['finished', 'dead']"]


# This process may be root's, to whom file modes do not apply. Lazy imports and starts happen before
# it gives up its rights: other users may not be able to read the interpreter's files.
AS_NOBODY = """
import json, os, sys
from pathlib import Path
from hudi_index_service import open_table
from hudi_index_service.config import Settings
from hudi_index_service.errors import PermissionDenied

folder, settings = Path(sys.argv[1]), Settings(cache_folder=Path(sys.argv[1], "cache"))

def table(name):
    return open_table(folder / name, settings=settings)

assert table("built").scan("amount = 3", use_index="require").to_arrow().num_rows == 1
table("built").build(strategy="all", dry_run=True)
table("built").verify()
for name in os.listdir(folder):
    if name != "cache":
        assert table(name).scan("amount = 3").explain().uses_index
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)

def ends(action):
    try:
        action()
        return "done"
    except PermissionDenied as error:
        return error.code

def read(name):
    scan = table(name).scan("amount = 3")
    return [scan.to_arrow().num_rows, scan.explain().uses_index]

def write(name):
    return [
        ends(lambda: table(name).create_index("others", ["id"])),
        ends(lambda: table(name).drop_index("early")),
        ends(lambda: table(name).build(strategy="all")),
    ]

print(json.dumps({
    "write": {name: write(name) for name in ("built", "due")},
    "read": {name: read(name) for name in sorted(os.listdir(folder)) if name != "cache"},
    "covered": [each.covered for each in table("built").status()],
    "problems": {
        name: [problem.reason for problem in table(name).verify().problems]
        for name in ("built", "data")
    },
}))
"""


HIDDEN = (".", "_service", "lucene")


@pytest.fixture(scope="module")
def for_nobody(golden_index: GoldenIndex) -> dict[str, Any]:
    """What a user without rights can do with copies of an indexed table, which every user may read
    and only the owner may write. ``due``: another index is not built. ``data``: a data file may not
    be read. ``hidden …``: nor may a folder of the index."""
    table = golden_index("clustered_then_upserted", **EARLY | {"build": True})
    # Not below pytest's own folders, which other runs of pytest close to other users.
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for each in ("built", "due", "data", *(f"hidden {hidden}" for hidden in HIDDEN)):
            shutil.copytree(table, folder / each)
        open_table(folder / "due").create_index("more", ["id"])
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        data_files(folder / "data")[0].chmod(0o600)
        for hidden in HIDDEN:
            (folder / f"hidden {hidden}" / ".hoodie" / ".index" / hidden).chmod(0o700)
        (line,) = lines_of(AS_NOBODY, folder)
        assert len(all_manifests(folder / "due")) == 2
    found: dict[str, Any] = json.loads(line)
    return found


def test_without_write_access_building_is_refused_and_reading_works(
    for_nobody: dict[str, Any],
) -> None:
    # In the first table nothing is due, so nothing has to be written.
    refused = "PERMISSION_DENIED"
    assert for_nobody["write"] == {"built": [refused, refused, "done"], "due": [refused] * 3}
    assert [for_nobody["read"][name] for name in ("built", "due")] == [[1, True]] * 2
    assert for_nobody["problems"]["built"] == []
    assert for_nobody["covered"] == [2]


@pytest.mark.parametrize("hidden", HIDDEN)
def test_a_reader_without_access_to_the_index_scans(
    hidden: str, for_nobody: dict[str, Any]
) -> None:
    segments_are_readable = hidden == "lucene"  # they exclude the other base file
    assert for_nobody["read"][f"hidden {hidden}"] == [1, segments_are_readable]


def test_verify_names_a_data_file_without_read_permission(for_nobody: dict[str, Any]) -> None:
    (reason,) = for_nobody["problems"]["data"]
    assert "cannot be read: Permission denied" in reason
