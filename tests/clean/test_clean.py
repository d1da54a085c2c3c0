"""Cleaning on a real table: what has expired goes, what may be in use stays."""

import os
from pathlib import Path
from time import time

import pytest

from hudi_index_service import IndexedTable
from hudi_index_service.clean import clean
from hudi_index_service.index.entry import EntryListing, entry_folder
from hudi_index_service.index.manifest import Manifest
from hudi_index_service.storage import Storage
from hudi_index_service.table.protocol import BaseFile
from tests.clean.conftest import Open

INDEX = ".hoodie/.index/lucene"


def entry_files(table: IndexedTable) -> list[str]:
    """Files of entries, those that obstore hides too, relative to the index type's folder."""
    root = Path(table.uri, INDEX)
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def folders(table: IndexedTable) -> list[Path]:
    """The folders of the entries."""
    return sorted({path.parent for path in Path(table.uri, INDEX).rglob("manifest-*.json")})


def age(table: IndexedTable, seconds: float) -> None:
    """Lets everything below the index look that old."""
    moment = time() - seconds
    for path in Path(table.uri, ".hoodie/.index").rglob("*"):
        os.utime(path, (moment, moment))


def reasons(table: IndexedTable, **options: bool) -> set[str]:
    return {removal.reason for removal in table.clean(**options).removals}


def base_file(table: IndexedTable, partition: str) -> BaseFile:
    due = [f for f in table._table.snapshot().base_files() if f.partition == partition]
    return due[0]


def test_nothing_to_clean(open_copy: Open) -> None:
    table = open_copy("fresh", grace_seconds=0)
    before = entry_files(table)
    cleaning = table.clean()
    assert (cleaning.removals, cleaning.bytes) == ((), 0)
    assert entry_files(table) == before
    assert [status.covered for status in table.status()] == [2]


def test_entries_go_with_their_base_files(open_copy: Open) -> None:
    table = open_copy("cleaned")
    assert len(folders(table)) == 2

    dry = table.clean(dry_run=True)
    assert len(folders(table)) == 2, "a dry run removes nothing"
    cleaning = table.clean()

    assert cleaning.removals == dry.removals
    assert {removal.reason for removal in cleaning.removals} == {"its base file is gone"}
    assert len(cleaning.removals) == 2
    assert cleaning.bytes == sum(removal.size for removal in cleaning.removals) > 1000
    assert cleaning.folders == 2, "the entry's own and its file id's; the instant holds another"
    (left,) = folders(table)
    assert left == Path(table.uri, entry_folder("lucene", base_file(table, "2026-01-01")))
    assert [(s.base_files, s.indexed) for s in table.status()] == [(2, 1)]
    assert table.clean().removals == ()
    assert table.verify() == []


def test_answers_stay_right_while_entries_come_and_go(open_copy: Open) -> None:
    table = open_copy("cleaned")
    expected = table.scan("msg = 'Buying car 3'", use_index="never").count()
    assert expected == 14
    assert table.scan("msg = 'Buying car 3'").count() == expected
    table.clean()
    assert table.scan("msg = 'Buying car 3'").count() == expected
    table.build(strategy="all")
    assert table.scan("msg = 'Buying car 3'", use_index="require").count() == expected


def test_by_instant_entries_go_once_their_instant_is_archived(open_copy: Open) -> None:
    table = open_copy("cleaned", retention="instant")
    lives = base_file(table, "2026-01-01")
    assert lives.instant not in {i.requested for i in table._table.completed_instants()}

    assert reasons(table) == {
        "its base file is gone",
        "its instant has left the active timeline",
    }
    assert folders(table) == []
    assert not Path(table.uri, INDEX).exists()


def test_by_instant_nothing_is_built_that_would_go(open_copy: Open) -> None:
    table = open_copy("cleaned", retention="instant")
    table.clean()

    build = table.build(strategy="all")

    assert [entry.base_file.partition for entry in build.due] == ["2026-01-02"]
    assert table.clean().removals == ()
    assert table.build(strategy="all").due == ()


def test_superseded_generations_go_after_a_grace_period(open_copy: Open) -> None:
    table = open_copy("fresh", grace_seconds=60)
    age(table, 3600)
    table.create_index("keys", ["id"])
    table.build(strategy="all")
    assert len(entry_files(table)) == 8

    # The first generation is old; that it is superseded is news that a reader may not have yet.
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


def test_unpublished_data_goes_after_a_grace_period(open_copy: Open) -> None:
    table = open_copy("fresh", grace_seconds=60)
    published = entry_files(table)
    folder = folders(table)[0]
    for name in ("data-000009-abc.pack", "data-000010-abc.pack#1", "manifest-0009.json#2"):
        (folder / name).write_bytes(b"a killed build's")

    assert table.clean().removals == ()
    assert len(entry_files(table)) == len(published) + 3
    age(table, 61)
    assert reasons(table) == {"a newer generation serves"}
    assert entry_files(table) == published


def test_an_entry_that_was_never_published_goes(open_copy: Open) -> None:
    table = open_copy("fresh", grace_seconds=60)
    folder = folders(table)[0]
    (folder / "manifest-0001.json").unlink()

    assert table.clean().removals == ()
    age(table, 61)
    assert reasons(table) == {"no valid manifest names it"}
    assert not folder.exists()


def test_a_dropped_indexs_entries_go_after_a_grace_period(open_copy: Open) -> None:
    table = open_copy("fresh", grace_seconds=60)
    table.drop_index("early")

    assert table.clean().removals == ()
    age(table, 61)
    assert reasons(table) == {"no live index uses it"}
    assert entry_files(table) == []


def test_purging_takes_entries_at_once_but_not_what_is_being_built(open_copy: Open) -> None:
    table = open_copy("fresh")
    being_built = folders(table)[0] / "data-000009-abc.pack"
    being_built.write_bytes(b"about to be published")

    table.drop_index("early", purge=True)

    assert entry_files(table) == [str(being_built.relative_to(Path(table.uri, INDEX)))]


def test_purging_takes_superseded_generations_too(open_copy: Open) -> None:
    table = open_copy("fresh")
    table.create_index("keys", ["id"])
    table.build(strategy="all")
    table.drop_index("early")
    table.drop_index("keys", purge=True)
    assert entry_files(table) == []


def test_purging_one_index_keeps_what_another_uses(open_copy: Open) -> None:
    table = open_copy("fresh")
    table.create_index("keys", ["id"])
    table.build(strategy="all")
    table.drop_index("keys", purge=True)

    assert [(s.definition.name, s.covered) for s in table.status()] == [("early", 2)]
    assert table.scan("msg = 'Buying car 3'", use_index="require").count() == 14


def test_entries_of_a_newer_format_live_as_long_as_their_base_file(open_copy: Open) -> None:
    table = open_copy("cleaned", grace_seconds=0)
    for manifest in Path(table.uri, INDEX).rglob("manifest-*.json"):
        manifest.write_text('{"format": [2, 0]}')
    age(table, 3600)

    assert reasons(table) == {"its base file is gone"}
    (left,) = folders(table)
    assert len(list(left.iterdir())) == 2
    table.drop_index("early", purge=True)
    assert len(list(left.iterdir())) == 2


def test_entries_of_a_newer_index_type_version_are_left_alone(open_copy: Open) -> None:
    table = open_copy("fresh", grace_seconds=0)
    for path in Path(table.uri, INDEX).rglob("manifest-*.json"):
        manifest = Manifest.from_json(path.read_bytes(), source=str(path))
        path.write_bytes(manifest.model_copy(update={"index_type_version": 2}).to_json())
    before = entry_files(table)

    assert table.build(strategy="all").due == ()
    assert table.scan("msg = 'Buying car 3'").count() == 14
    table.drop_index("early", purge=True)
    assert entry_files(table) == before


def test_below_a_damaged_manifest_nothing_goes(open_copy: Open) -> None:
    table = open_copy("fresh", grace_seconds=60)
    table.create_index("keys", ["id"])
    table.build(strategy="all")
    for manifest in Path(table.uri, INDEX).rglob("manifest-0002.json"):
        manifest.write_bytes(b"{")
    age(table, 61)

    assert table.clean().removals == ()
    assert table.scan("msg = 'Buying car 3'", use_index="require").count() == 14


def test_an_entry_of_a_base_file_that_bore_the_same_names(open_copy: Open) -> None:
    """Same instant and file id, another write token: as after a rolled-back attempt."""
    table = open_copy("fresh", grace_seconds=60)
    path = Path(table.uri, base_file(table, "2026-01-01").path)
    file_id, token, instant = path.name.split("_")
    path.rename(path.with_name(f"{file_id}_9{token}_{instant}"))

    assert reasons(table) == {"its base file is gone"}
    assert len(folders(table)) == 1


def test_old_build_records_go_but_the_newest(open_copy: Open) -> None:
    table = open_copy("fresh")
    table.create_index("keys", ["id"])
    table.build(strategy="all")
    assert [record.number for record in table.builds()] == [2, 1]

    assert table.clean().removals == ()
    age(table, 8 * 24 * 3600)
    assert "the build is long over" in reasons(table)
    assert [record.number for record in table.builds()] == [2]


def test_other_files_of_the_table_stay(open_copy: Open) -> None:
    table = open_copy("cleaned", grace_seconds=0, retention="instant")

    def others() -> list[Path]:
        root = Path(table.uri)
        return sorted(p for p in root.rglob("*") if ".index/lucene" not in str(p))

    before = others()
    table.clean()
    assert others() == before


def test_readers_that_hold_an_entry_open_are_not_disturbed(open_copy: Open) -> None:
    table = open_copy("fresh", grace_seconds=0)
    assert table.scan("msg = 'Buying car 3'", use_index="require").to_arrow().num_rows == 14
    other = open_copy("fresh", grace_seconds=0)
    other.drop_index("early", purge=True)
    assert table.scan("msg = 'Buying car 3'").to_arrow().num_rows == 14


def test_entries_on_disk_match_what_clean_reports(open_copy: Open) -> None:
    table = open_copy("cleaned")
    storage = Storage(table.uri)
    expected = {file.path for file in storage.files(INDEX)}
    cleaning = clean(table._table, {"lucene": {"msg"}}, table._settings)
    removed = {removal.path for removal in cleaning.removals}
    assert expected - {file.path for file in storage.files(INDEX)} == removed
    assert EntryListing(storage, "lucene").folders() == [
        str(folder.relative_to(table.uri)) for folder in folders(table)
    ]


@pytest.mark.parametrize("name", ["fresh", "cleaned"])
def test_cleaning_twice_is_a_no_op(open_copy: Open, name: str) -> None:
    table = open_copy(name, grace_seconds=0)
    table.clean()
    assert (table.clean().removals, table.clean().folders) == ((), 0)
