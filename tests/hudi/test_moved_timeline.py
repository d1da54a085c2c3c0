"""A table that stays open: while Hudi moves its timeline to another folder, or overwrites it; and
while queries that begin together share a snapshot, for which none waits."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_index_service.errors import SnapshotChanged
from hudi_index_service.hudi import open_hudi_table, opened_table
from hudi_index_service.hudi import table as table_module
from tests.at_once import at_once
from tests.golden.table import Golden

TABLE = "hudi_index_service.hudi.table"


@pytest.fixture
def no_waits(monkeypatch):
    monkeypatch.setattr(f"{TABLE}.sleep", lambda seconds: None)


def moved_to_version_9(path: Path) -> Iterator[str]:
    """Upgrades a table of version 6, one step of Hudi's at a time: the instants' files first, the
    properties last."""
    hoodie = path / ".hoodie"
    (hoodie / "timeline/history").mkdir(parents=True)
    yield "folder made"
    for file in sorted(hoodie.glob("2*")):
        requested, rest = file.name.split(".", 1)
        completed = "" if "." in rest else f"_{requested}"
        file.rename(hoodie / "timeline" / f"{requested}{completed}.{rest}")
        yield f"{file.name} moved"
    properties = hoodie / "hoodie.properties"
    text = re.sub("table.version=6", "table.version=9", properties.read_text())
    properties.write_text(re.sub("layout.version=1", "layout.version=2", text))
    yield "properties written"


def test_every_step_of_an_upgrade_shows_all_instants_or_is_refused(golden, tmp_path, no_waits):
    path = golden("version_6").put(tmp_path / "table")
    table = open_hudi_table(path)
    requested = [each.requested for each in table.completed_instants()]
    latest, slices = requested[-1], len(table.snapshot().slices)

    seen = {}
    for step in moved_to_version_9(path):
        try:
            seen[step] = [each.requested for each in table.completed_instants()]
        except SnapshotChanged:
            seen[step] = []
            with pytest.raises(SnapshotChanged):
                table.snapshot()
            with pytest.raises(SnapshotChanged):
                open_hudi_table(path).completed_instants()
        else:
            assert latest in seen[step]

    assert slices > 0
    assert seen["folder made"] == seen["properties written"] == requested
    assert [] in seen.values()


def test_an_answer_waits_for_the_end_of_the_upgrade(golden, tmp_path, monkeypatch):
    path = golden("version_6").put(tmp_path / "table")
    table = open_hudi_table(path)
    requested = [each.requested for each in table.completed_instants()]
    upgrade = moved_to_version_9(path)
    while not next(upgrade).startswith(f"{requested[-1]}."):
        pass

    # Hudi takes its next steps while the table waits.
    monkeypatch.setattr(f"{TABLE}.sleep", lambda seconds: next(upgrade, None))

    assert [each.requested for each in table.completed_instants()] == requested


def test_a_table_overwritten_in_another_version(golden, tmp_path, no_waits):
    path, table = tmp_path / "table", None
    for version in ("version_6", "version_9", "version_6"):
        if path.exists():
            shutil.rmtree(path)
        golden(version).put(path)
        table = table or open_hudi_table(path)
        expected = open_hudi_table(path).snapshot()
        assert table.snapshot() == expected
        assert expected.slices


def test_a_table_whose_removal_has_begun_is_no_empty_table(golden, tmp_path, no_waits):
    path = golden("version_9").put(tmp_path / "table")
    table = open_hudi_table(path)
    table.snapshot()
    for file in (path / ".hoodie/timeline").glob("2*"):
        file.unlink()

    with pytest.raises(SnapshotChanged, match="completed instants are missing") as refused:
        table.snapshot()
    assert "Run the query again" in (refused.value.remedy or "")


def test_a_table_created_anew_is_empty(golden, tmp_path, no_waits):
    path = golden("version_9").put(tmp_path / "table")
    table = open_hudi_table(path)
    table.snapshot()
    for file in (path / ".hoodie/timeline").glob("2*"):
        file.unlink()
    properties = path / ".hoodie/hoodie.properties"
    properties.write_text("#Properties saved on a later day\n" + properties.read_text())

    assert table.snapshot().slices == ()


def test_an_empty_table_upgraded_before_its_first_commit(golden, tmp_path, no_waits):
    path = golden("version_6").put(tmp_path / "table")
    kept = [(file.name, file.read_bytes()) for file in (path / ".hoodie").glob("2*")]
    for name, _ in kept:
        (path / ".hoodie" / name).unlink()
    table = open_hudi_table(path)
    assert table.completed_instants() == ()

    for name, content in kept:
        (path / ".hoodie" / name).write_bytes(content)
    for _ in moved_to_version_9(path):
        pass

    assert table.completed_instants()


def test_a_rollback_takes_an_instant_away(golden, tmp_path, no_waits):
    path = golden("version_9").put(tmp_path / "table")
    table = open_hudi_table(path)
    *kept, last = table.completed_instants()
    for file in (path / ".hoodie/timeline").glob(f"{last.requested}*"):
        file.unlink()

    with pytest.raises(SnapshotChanged):
        table.completed_instants()

    (path / ".hoodie/timeline/29991231000000000.rollback.inflight").touch()
    assert list(table.completed_instants()) == kept


def test_threads_share_one_snapshot(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = open_hudi_table(str(golden("hundred_base_files").put(tmp_path / "table")))
    table.schema()
    list_data_files, listings = opened_table.list_data_files, list[str]()

    def counted(*arguments: Any, **named: Any) -> Any:
        listings.append("once")
        return list_data_files(*arguments, **named)

    monkeypatch.setattr(opened_table, "list_data_files", counted)
    first, *others = at_once(*[table.snapshot] * 4)
    assert len(first.slices) == 100
    assert all(each is first for each in others)
    assert listings == ["once"]


def test_a_complete_timeline_is_read_without_a_pause(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pause(seconds: float) -> None:
        raise AssertionError(f"a pause of {seconds} s, which gives the processor away")

    monkeypatch.setattr(table_module, "sleep", pause)
    table = open_hudi_table(str(golden("two_hundred_rows").put(tmp_path / "table")))
    assert table.snapshot() is table.snapshot()
