"""Cleaning a real table: what has expired is removed, what may be in use is kept."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from time import time

import pytest

from hudi_index_service import IndexedTable
from hudi_index_service.config import CleanSettings, Settings
from hudi_index_service.hook.table_upkeep import TableUpkeep
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.metadata.build_records import BuildRecords, RunningBuild
from hudi_index_service.index.metadata.manifest import Manifest, entry_folder
from hudi_index_service.maintain.clean import clean
from hudi_index_service.storage.store import Storage, StoredFile
from tests.clean.conftest import Open
from tests.indexed import indexed
from tests.programs import Command

INDEX = ".hoodie/.index/lucene"
NO_GRACE = Settings(clean=CleanSettings(grace_seconds=0))


def entry_files(table: IndexedTable) -> list[str]:
    """Files of entries, including those that obstore hides, relative to the index type's folder."""
    root = Path(table.uri, INDEX)
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def folders(table: IndexedTable) -> list[Path]:
    """The folders of the entries."""
    return sorted({path.parent for path in Path(table.uri, INDEX).rglob("manifest-*.json")})


def age(table: IndexedTable, seconds: float) -> None:
    """Sets the modification time of everything in the index that many seconds back."""
    moment = time() - seconds
    for path in Path(table.uri, ".hoodie/.index").rglob("*"):
        os.utime(path, (moment, moment))


def reasons(table: IndexedTable, **options: bool) -> set[str]:
    return {removal.reason for removal in table.clean(**options).removals}


def base_file(table: IndexedTable, partition: str) -> BaseFile:
    due = [f for f in table.hudi_table.snapshot().base_files() if f.partition == partition]
    return due[0]


def test_entries_are_removed_with_their_base_files(open_copy: Open) -> None:
    table = open_copy("cleaned")
    before = {file.path for file in Storage(table.uri).files(INDEX)}
    assert len(folders(table)) == 2

    dry = table.clean(dry_run=True)
    assert len(folders(table)) == 2, "a dry run removes nothing"
    cleaning = table.clean()

    assert cleaning.removals == dry.removals
    left = {file.path for file in Storage(table.uri).files(INDEX)}
    assert before - left == {removal.path for removal in cleaning.removals}
    assert {removal.reason for removal in cleaning.removals} == {"its base file is gone"}
    assert len(cleaning.removals) == 2
    assert cleaning.bytes == sum(removal.size for removal in cleaning.removals) > 1000
    assert cleaning.folders == 2, "of the entry and of its file id; the instant has another entry"
    (folder,) = folders(table)
    assert folder == Path(table.uri, entry_folder("lucene", base_file(table, "2026-01-01")))
    assert [(s.base_files, s.covered) for s in table.status()] == [(2, 1)]
    assert (table.clean().removals, table.clean().folders) == ((), 0)
    assert table.verify().problems == ()
    assert table.scan("msg = 'Buying car 3'").count() == 14
    table.build(strategy="all")
    assert table.scan("msg = 'Buying car 3'", use_index="require").count() == 14


def test_retention_by_instant_removes_entries_of_archived_instants(open_copy: Open) -> None:
    table = open_copy("cleaned", retention="instant")
    kept = base_file(table, "2026-01-01")
    assert kept.instant not in {i.requested for i in table.hudi_table.completed_instants()}
    others = other_files(table)

    assert reasons(table) == {
        "its base file is gone",
        "its instant has left the active timeline",
    }
    assert not Path(table.uri, INDEX).exists()
    assert other_files(table) == others

    build = table.build(strategy="all")
    assert [entry.base_file.partition for entry in build.due] == ["2026-01-02"]
    assert table.clean().removals == ()
    assert table.build(strategy="all").due == ()


def other_files(table: IndexedTable) -> list[Path]:
    """All files but those of entries and segments."""
    ours = (".index/lucene", "_service/segments")
    paths = Path(table.uri).rglob("*")
    return sorted(path for path in paths if not any(each in str(path) for each in ours))


def test_key_of_a_write_config_chooses_the_retention(open_copy: Open) -> None:
    by_setting = open_copy("cleaned")
    expired = {"its base file is gone", "its instant has left the active timeline"}
    with TableUpkeep(by_setting.uri, options={"hoodie.index.retention": " Instant "}) as upkeep:
        upkeep.peek()
        assert reasons(upkeep.table, dry_run=True) == expired
        assert upkeep.table.status().outliving.entries == 2
    assert reasons(by_setting, dry_run=True) == {"its base file is gone"}

    by_setting.retain("instant")
    assert reasons(by_setting, dry_run=True) == expired
    by_setting.retain(None)
    assert reasons(by_setting, dry_run=True) == {"its base file is gone"}


def test_wake_ups_build_and_clean(open_copy: Open) -> None:
    table = open_copy("cleaned")
    with TableUpkeep(table.uri, options={"hoodie.index.retention": "instant"}) as upkeep:
        upkeep.run()
    assert table.clean(dry_run=True).removals == ()
    table.retain("instant")
    assert table.clean(dry_run=True).removals == ()


def test_superseded_generations_are_removed_after_a_grace_period(open_copy: Open) -> None:
    table = open_copy("fresh", grace_seconds=60)
    age(table, 3600)
    indexed(table, ["id"])
    assert len(entry_files(table)) == 8

    # The first generation is old, but it was superseded just now: readers may still use it.
    assert table.clean().removals == ()
    age(table, 61)
    cleaning = table.clean()

    assert {removal.reason for removal in cleaning.removals} == {"a newer generation serves"}
    assert len(cleaning.removals) == 4
    assert [Path(name).name for name in entry_files(table) if "manifest" in name] == [
        "manifest-0002.json",
        "manifest-0002.json",
    ]
    assert table.scan("id = '7' and msg = 'Buying car 0'", use_index="require").count() == 1


def test_unpublished_data_is_removed_after_a_grace_period(open_copy: Open) -> None:
    table = open_copy("fresh", grace_seconds=60)
    published = entry_files(table)
    folder = folders(table)[0]
    for name in ("data-000009-abc.pack", "data-000010-abc.pack#1", "manifest-0009.json#2"):
        (folder / name).write_bytes(b"a killed build's")

    assert table.clean().removals == ()
    assert len(entry_files(table)) == len(published) + 3
    age(table, 61)
    assert reasons(table) == {"no manifest names it"}
    assert entry_files(table) == published


def start_build(table: IndexedTable) -> RunningBuild:
    """A running build, as another process would start it."""
    return BuildRecords(Storage(table.uri), stale_seconds=120).start({"strategy": "all"})


def test_files_of_a_running_build_are_kept_whatever_their_age(open_copy: Open) -> None:
    table = open_copy("fresh", grace_seconds=0)
    published = entry_files(table)
    running = start_build(table)
    assert running.id == "000002"
    parts = [
        "data-000002-abc.pack",
        "data-000002-def.pack#1",
        "data-000002-part-0001-of-0002-abc.pack",
        "data-000002-part-0001-of-0002-abc.pack.part.json",
    ]
    for name in (*parts, "data-000009-abc.pack", "data-000001-part-0001-of-0002-abc.pack"):
        (folders(table)[0] / name).write_bytes(b"a part of an entry")
    age(table, 24 * 3600)
    running.beat()

    assert reasons(table) == {"no manifest names it"}
    assert len(entry_files(table)) == len(published) + len(parts)
    running.finish({})
    assert reasons(table) == {"no manifest names it"}
    assert entry_files(table) == published


class ListingThenEvent(Storage):
    """Calls `happens` right after the entries were listed."""

    def __init__(self, uri: str, happens: Callable[[], object]) -> None:
        super().__init__(uri)
        self._happens = happens

    def files(self, prefix: str = "") -> list[StoredFile]:
        found = super().files(prefix)
        if prefix == INDEX:
            self._happens()
        return found


@pytest.mark.parametrize("begins", [False, True])
def test_files_of_a_build_that_begins_or_ends_during_cleaning_are_kept(
    open_copy: Open, begins: bool
) -> None:
    """Its data file was listed before its record, or before its manifest existed: an entry may use
    it by now."""
    table = open_copy("fresh", grace_seconds=0)
    running = None if begins else start_build(table)
    data = folders(table)[0] / "data-000002-abc.pack"
    data.write_bytes(b"published while the cleaner looks")

    storage = ListingThenEvent(table.uri, lambda: (running or start_build(table)).finish({}))
    assert clean(HudiTable(storage), NO_GRACE).removals == ()
    assert data.exists()
    assert reasons(table) == {"no manifest names it"}


def test_an_entry_that_was_never_published_is_removed(open_copy: Open) -> None:
    table = open_copy("fresh", grace_seconds=60)
    folder = folders(table)[0]
    (folder / "manifest-0001.json").unlink()
    age(table, 0)

    assert table.clean().removals == ()
    age(table, 61)
    assert reasons(table) == {"no valid manifest names it"}
    assert not folder.exists()


def test_entries_of_a_dropped_index_are_removed_after_a_grace_period(open_copy: Open) -> None:
    table = open_copy("fresh", grace_seconds=60)
    table.drop_index("early")

    assert table.clean().removals == ()
    age(table, 61)
    assert reasons(table) == {
        "no live index uses it",
        "a newer version of the definition is current",
    }
    assert entry_files(table) == []


def test_the_grace_period_begins_when_the_index_is_dropped(open_copy: Open) -> None:
    table = open_copy("fresh", grace_seconds=60)
    age(table, 3600)
    table.drop_index("early")
    assert table.clean().removals == ()
    table.create_index("again", ["msg"])
    age(table, 3600)
    assert [status.covered for status in table.status()] == [2]
    assert reasons(table) == {"a newer version of the definition is current"}


def test_purging_removes_entries_at_once_except_those_being_built(open_copy: Open) -> None:
    table = open_copy("fresh")
    running = start_build(table)
    being_built = folders(table)[0] / f"data-{running.id}-abc.pack"
    being_built.write_bytes(b"about to be published")

    table.drop_index("early", purge=True)

    assert entry_files(table) == [str(being_built.relative_to(Path(table.uri, INDEX)))]


def test_purging_removes_every_generation(open_copy: Open) -> None:
    table = open_copy("fresh")
    indexed(table, ["id"], name="keys")
    for name in ("data-000001-abc.pack", "data-000001-abc.pack#1", "manifest-0003.json#1"):
        (folders(table)[0] / name).write_bytes(b"a killed build's")
    (folders(table)[0] / "manifest-0003.json").write_bytes(b"{")
    table.drop_index("early")
    purge = table.drop_index("keys", purge=True).purge

    assert purge is not None
    assert purge.build is not None
    assert (purge.build.due, purge.remaining) == ((), ())
    assert not Path(table.uri, INDEX).exists()
    assert [path.name for path in Path(table.uri, INDEX).parent.iterdir()] == ["_service"]


def test_entries_of_a_newer_format_are_kept_while_their_base_file_exists(open_copy: Open) -> None:
    table = open_copy("cleaned", grace_seconds=0)
    for manifest in Path(table.uri, INDEX).rglob("manifest-*.json"):
        manifest.write_text('{"format": [2, 0]}')
    age(table, 3600)

    assert reasons(table) == {"its base file is gone"}
    (left,) = folders(table)
    assert len(list(left.iterdir())) == 2
    table.drop_index("early", purge=True)
    assert len(list(left.iterdir())) == 2


def test_entries_of_a_newer_index_type_version_are_kept(open_copy: Open) -> None:
    table = open_copy("fresh", grace_seconds=0)
    for path in Path(table.uri, INDEX).rglob("manifest-*.json"):
        manifest = Manifest.from_json(path.read_bytes(), source=str(path))
        path.write_bytes(manifest.model_copy(update={"index_type_version": 2}).to_json())
    before = entry_files(table)

    assert table.build(strategy="all").due == ()
    assert table.scan("msg = 'Buying car 3'").count() == 14
    table.drop_index("early", purge=True)
    assert entry_files(table) == before


def test_damaged_manifests_and_their_data_are_removed_after_a_grace_period(open_copy: Open) -> None:
    table = open_copy("fresh", grace_seconds=60)
    before = entry_files(table)
    indexed(table, ["id"])
    for manifest in Path(table.uri, INDEX).rglob("manifest-0002.json"):
        manifest.write_bytes(b"{")

    assert table.clean().removals == ()
    age(table, 61)
    assert reasons(table) == {
        "it is damaged",
        "no manifest names it",
        "it contains manifests that are removed",  # the summary, which is older than the damage
    }
    assert entry_files(table) == before
    assert table.scan("msg = 'Buying car 3'", use_index="require").count() == 14


def test_entries_are_kept_while_a_definition_is_unreadable(open_copy: Open) -> None:
    """Its writer, for instance a newer release, may use them."""
    table = open_copy("fresh", grace_seconds=0)
    (definition,) = Path(table.uri, ".hoodie/.index/_service/definitions").iterdir()
    definition.write_text('{"format": [2, 0]}')
    assert table.indexes() == ()

    assert table.clean().removals == ()
    assert len(folders(table)) == 2


def test_superseded_versions_of_definitions_are_removed(open_copy: Open) -> None:
    table = open_copy("fresh", grace_seconds=60)
    definitions = Path(table.uri, ".hoodie/.index/_service/definitions")
    table.drop_index("early")
    table.create_index("early", ["id"])
    table.drop_index("early")
    table.create_index("damaged", ["id"])
    table.drop_index("damaged")
    (definitions / "damaged-0002.json").write_bytes(b"{")
    assert table.clean().removals == ()
    age(table, 61)

    table.clean()

    assert sorted(path.name for path in definitions.iterdir()) == [
        "damaged-0001.json",  # in case the newer one is repaired
        "damaged-0002.json",
        "early-0004.json",
    ]
    assert table.indexes() == ()
    assert table.create_index("early", ["msg"]).version == 5


def test_a_definition_being_written_is_kept_without_a_grace_period(
    open_copy: Open,
) -> None:
    table = open_copy("fresh", grace_seconds=60)
    unfinished = Path(table.uri, ".hoodie/.index/_service/definitions/keys-0001.json#1")
    unfinished.write_bytes(b"{")

    assert table.clean(grace_seconds=0).removals == ()
    age(table, 61)
    (removal,) = table.clean(grace_seconds=0).removals
    assert (Path(removal.path).name, removal.reason) == (unfinished.name, "its writer died")


def test_an_entry_of_a_base_file_with_another_write_token_is_removed(open_copy: Open) -> None:
    """Same instant and file id, another write token, as after a failed attempt was rolled back."""
    table = open_copy("fresh", grace_seconds=60)
    path = Path(table.uri, base_file(table, "2026-01-01").path)
    file_id, token, instant = path.name.split("_")
    path.rename(path.with_name(f"{file_id}_9{token}_{instant}"))

    assert reasons(table) == {"its base file is gone"}
    assert len(folders(table)) == 1


def test_old_build_records_are_removed_except_the_newest(open_copy: Open) -> None:
    table = open_copy("fresh")
    indexed(table, ["id"])
    assert [record.number for record in table.builds()] == [2, 1]

    assert table.clean().removals == ()
    age(table, 8 * 24 * 3600)
    assert "the build is long over" in reasons(table)
    assert [record.number for record in table.builds()] == [2]


def outside(table: IndexedTable) -> list[Path]:
    """All files of the table outside the index, and of the folder beside it."""
    places = [Path(table.uri), Path(table.uri).parent / "elsewhere"]
    return sorted(
        path for place in places for path in place.rglob("*") if ".hoodie/.index" not in str(path)
    )


def test_nothing_behind_a_link_is_removed(open_copy: Open, tmp_path: Path) -> None:
    """A user who may write the index folder must not make the cleaner delete other files."""
    table = open_copy("fresh", grace_seconds=0)
    index = Path(table.uri, INDEX)
    target = tmp_path / "elsewhere"
    for place in ("a/b/c", "000001", "empty/empty"):
        (target / place).mkdir(parents=True)
        (target / place / "data-000001-abc.pack").write_bytes(b"another's")
    (target / "empty/empty/data-000001-abc.pack").unlink()
    (target / "half.pack#1").write_bytes(b"another's")
    builds = index.parent / "_service" / "builds"
    (builds / "000000").symlink_to(target / "000001")
    (index / "20200101").symlink_to(target / "a")
    (index / "20200102").symlink_to(Path(table.uri, "2026-01-01"))
    (folders(table)[0] / "elsewhere").symlink_to(target)
    (folders(table)[1] / "data-000001-a-link.pack").symlink_to(target / "half.pack#1")
    (index.parent / "other_type").symlink_to(target)
    before = outside(table)
    age(table, 30 * 24 * 3600)

    cleaning = table.clean()

    assert [Path(each.path).name for each in cleaning.removals] == ["data-000001-a-link.pack"]
    assert outside(table) == before
    table.drop_index("early", purge=True)
    assert outside(table) == before
    assert sorted(path.name for path in index.iterdir())[:2] == ["20200101", "20200102"]


@pytest.mark.parametrize("name", ["../../../x", "x\0"])
def test_a_manifest_that_names_a_file_outside_its_folder_is_invalid(
    open_copy: Open, name: str
) -> None:
    table = open_copy("fresh", grace_seconds=0)
    before = outside(table)
    for path in Path(table.uri, INDEX).rglob("manifest-*.json"):
        manifest = Manifest.from_json(path.read_bytes(), source=str(path))
        data = manifest.data.model_copy(update={"name": name})
        path.write_bytes(manifest.model_copy(update={"data": data}).to_json())

    assert reasons(table) == {"no valid manifest names it"}
    assert outside(table) == before
    assert not Path(table.uri, INDEX).exists()


def test_a_manifest_that_names_another_entrys_file_is_removed(open_copy: Open) -> None:
    """An entry never treats the data file of another entry as its own."""
    table = open_copy("fresh", grace_seconds=0)
    own, other = folders(table)
    (manifest,) = own.glob("manifest-*.json")
    content = Manifest.from_json(manifest.read_bytes(), source=str(manifest))
    (named,) = other.glob("data-*.pack")
    data = content.data.model_copy(update={"name": named.name})
    manifest.write_bytes(content.model_copy(update={"data": data}).to_json())

    table.clean()

    assert folders(table) == [other]
    assert named.exists()
    assert table.scan("msg = 'Buying car 3'").count() == 14


def test_readers_keep_working_on_removed_entries(open_copy: Open) -> None:
    table = open_copy("fresh", grace_seconds=0)
    assert table.scan("msg = 'Buying car 3'", use_index="require").to_arrow().num_rows == 14
    other = open_copy("fresh", grace_seconds=0)
    other.drop_index("early", purge=True)
    assert table.scan("msg = 'Buying car 3'").to_arrow().num_rows == 14


def test_purging_works_if_the_clock_of_the_store_is_ahead(open_copy: Open) -> None:
    """Without a grace period no file is too young to be removed."""
    table = open_copy("fresh")
    age(table, -3600)
    table.drop_index("early", purge=True)
    assert entry_files(table) == []


def test_the_clean_command_reports_removals_as_text_and_json(
    open_copy: Open, command: Command
) -> None:
    table = open_copy("cleaned")
    gone = {removal.path: removal.size for removal in table.clean(dry_run=True).removals}
    before = entry_files(table)

    as_json = command("clean", table.uri, "--dry-run", "--output", "json")
    report = json.loads(as_json)
    assert report["dry_run"] is True
    assert {each["path"]: each["bytes"] for each in report["removals"]} == gone
    assert {each["reason"] for each in report["removals"]} == {"its base file is gone"}
    assert report["bytes"] == sum(gone.values())
    *lines, total = command("clean", table.uri, "--dry-run").splitlines()
    assert [line.split(maxsplit=2) for line in lines] == [
        [f"{size:,}", path, "its base file is gone"] for path, size in gone.items()
    ]
    assert total == f"2 files would be removed, {sum(gone.values()):,} bytes in the table."
    assert entry_files(table) == before

    assert "2 files removed" in command("clean", table.uri)
    table.drop_index("early")
    assert "0 files removed" in command("clean", table.uri)
    assert "no live index uses it" in command("clean", table.uri, "--grace", "0")
    assert entry_files(table) == []
