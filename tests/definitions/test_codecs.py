"""A Lucene entry names the codec of its files. One that this release does not read is scanned, told
and built anew."""

import json
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.index.metadata.documents import checksum_of
from hudi_index_service.index.metadata.manifest import Manifest
from hudi_index_service.index.packed_file import DataFile, checksums
from tests.indexed import indexed
from tests.programs import Command

WHERE = "amount < 30"
UNREAD = "the codec Lucene103, which this release does not read"


@pytest.fixture
def built(table: IndexedTable) -> IndexedTable:
    """60 rows in two base files, with entries."""
    return indexed(table, ["amount", "msg"], name="numbers")


def manifests(table: IndexedTable) -> Iterator[Path]:
    """The manifests of the entries."""
    return Path(table.uri, ".hoodie/.index/lucene").rglob("manifest-0001.json")


def restate(path: Path, **fields: object) -> None:
    """Gives a manifest other fields, and leaves out those that are None."""
    stored = json.loads(path.read_bytes()) | fields
    body = {name: value for name, value in stored.items() if value is not None}
    del body["checksum"]
    path.write_text(json.dumps(body | {"checksum": checksum_of(body)}))


def rows(table: IndexedTable, **options: str) -> list[str]:
    """What a query finds, sorted."""
    return sorted(table.scan(WHERE, columns=["id"], **options).to_arrow()["id"].to_pylist())


def reasons(table: IndexedTable) -> set[str]:
    """Why the query reads the base files as it does."""
    return {each["reason"] for each in table.scan(WHERE).explain().to_dict()["slices"]}


def test_an_entry_names_the_codec_that_its_list_of_segments_names(built: IndexedTable) -> None:
    for path in manifests(built):
        stored = json.loads(path.read_bytes())
        assert stored["codec"] == "Lucene912"
        assert stored["codec"].encode() in list_of_segments(path)[1]


def test_entries_of_a_codec_that_is_not_read_are_scanned_told_and_built_anew(
    built: IndexedTable, command: Command
) -> None:
    for path in manifests(built):
        restate(path, codec="Lucene103")

    with open_table(built.uri) as table:
        assert reasons(table) == {f"its lucene entry has {UNREAD}"}
        assert rows(table) == rows(table, use_index="never") != []
        (status,) = table.status()
        assert (status.covered, status.outdated, status.unread) == (0, 2, {UNREAD: 2})
        assert [each.reason for each in table.verify().problems] == [f"it has {UNREAD}."] * 2
        refresh = f"`hudi-index refresh {built.uri} numbers`"
        told = (
            "Not read, so scanned: the entries of 2 of 2 base files for numbers (lucene). They "
            f"have {UNREAD}. {refresh} builds them anew."
        )
        assert told in command("status", built.uri)

        command("refresh", built.uri, "numbers")
        (status,) = table.status()
        assert (status.covered, status.outdated, status.unread) == (2, 0, {})
        assert rows(table, use_index="require") == rows(table, use_index="never")


def test_entries_of_older_formats_name_no_codec_and_are_read(built: IndexedTable) -> None:
    for path in manifests(built):
        restate(path, codec=None, format=[1, 3])

    with open_table(built.uri) as table:
        assert rows(table, use_index="require") == rows(table, use_index="never") != []
        assert table.status()[0].covered == 2
        assert table.refresh("numbers").due == ()


def test_files_of_another_codec_than_the_entry_names_are_scanned(
    built: IndexedTable, caplog: pytest.LogCaptureFixture
) -> None:
    for path in manifests(built):
        write_codec(path, "Lucene103")

    with open_table(built.uri) as table:
        assert rows(table) == rows(table, use_index="never") != []
        refused = [each.message for each in caplog.records if "is scanned" in each.message]
        assert refused
        assert all("Could not load codec 'Lucene103'" in each for each in refused)
        repaired = table.verify(repair=True)
        assert (len(repaired.problems), repaired.unrepaired) == (2, ())
        assert rows(table, use_index="require") == rows(table, use_index="never")


def list_of_segments(path: Path) -> tuple[int, bytes]:
    """Where an entry's list of segments begins in its data file, and its bytes."""
    data = Manifest.from_json(path.read_bytes(), source="here").data
    (member,) = (each for each in data.members if each.name.startswith("segments_"))
    packed = path.with_name(data.name).read_bytes()
    return member.offset, packed[member.offset : member.offset + member.length]


def write_codec(path: Path, name: str) -> None:
    """Has an entry's list of segments name another codec, with checksums that fit."""
    at, segments = list_of_segments(path)
    body = segments.replace(b"Lucene912", name.encode())[:-8]
    changed = body + zlib.crc32(body).to_bytes(8, "big")  # the end of each of Lucene's files
    assert len(changed) == len(segments)
    data = Manifest.from_json(path.read_bytes(), source="here").data
    file = path.with_name(data.name)
    packed = file.read_bytes()
    file.write_bytes(packed[:at] + changed + packed[at + len(changed) :])
    crc32s, sha256 = checksums(file)
    update = {"block_crc32": DataFile.encode_crc32s(crc32s), "sha256": sha256}
    restate(path, data=data.model_copy(update=update).model_dump(mode="json"))
