"""A person's rows are deleted, compacted or clustered away, and cleaned by Hudi and by the service:
then no byte of them is left in the index, in caches, in records or in logs."""

import logging
import shutil
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.config import CleanSettings, Settings
from hudi_index_service.index.files.local_copy import packed_index
from hudi_index_service.index.lucene import jvm
from hudi_index_service.index.lucene.directory import packed_directory
from hudi_index_service.index.metadata.entry import Entry, EntryListing
from hudi_index_service.index.metadata.retention import expired_entries
from hudi_index_service.index.metadata.segments.bounds import exact_keys, hashes
from hudi_index_service.index.metadata.segments.store import SegmentStore
from hudi_index_service.storage.store import Storage
from tests.golden.recipes.services import ACCOUNT
from tests.golden.recipes.services import PERSON as NAME
from tests.golden.table import Golden
from tests.indexed import indexed

MARK = "zebediah"  # as every analyzer keeps it, and part of every other spelling
TRACES = (
    MARK.encode(),
    str(ACCOUNT).encode(),
    struct.pack("<q", ACCOUNT),
    struct.pack(">Q", ACCOUNT ^ (1 << 63)),  # as Lucene's points sort
)


def entries(storage: Storage) -> list[Entry]:
    listing = EntryListing(storage, "lucene", fresh=True)
    return [Entry(folder, listing.newest_valid(folder)) for folder in listing.folders()]


def traces_in_bytes(folders: Iterable[Path]) -> list[Path]:
    """The files that contain the person's name or account verbatim, whatever the case."""
    found = []
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file():
                content = path.read_bytes().lower()
                if any(trace.lower() in content for trace in TRACES):
                    found.append(path)
    return found


def terms(storage: Storage, entry: Entry) -> Iterator[str]:
    """Every term of an entry, decompressed."""
    jvm.attach()
    from org.apache.lucene.index import DirectoryReader, FieldInfo
    from org.apache.lucene.util import BytesRef, BytesRefIterator

    with packed_index(storage, entry, Settings()) as index:
        reader = DirectoryReader.open(packed_directory(index))
    for leaf in reader.leaves():
        for field in leaf.reader().getFieldInfos():
            found = leaf.reader().terms(FieldInfo.cast_(field).name)
            for term in [] if found is None else BytesRefIterator.cast_(found.iterator()):
                yield BytesRef.cast_(term).utf8ToString()
    reader.close()


def traces_in_terms(table: IndexedTable) -> list[str]:
    storage = table.hudi_table.storage
    return [
        entry.folder
        for entry in entries(storage)
        if any(MARK in term.lower() for term in terms(storage, entry))
    ]


def traces_in_segments(table: IndexedTable) -> list[str]:
    """The segments that state a fact of the person's rows: a bound, or the key of a value."""
    storage = table.hudi_table.storage
    store = SegmentStore(storage, "lucene")
    name_key, account_key = hashes(pa.array([NAME])), exact_keys(pa.array([ACCOUNT]))
    assert account_key is not None
    found = []
    for file in store.listed():
        segment = store.open(file)
        facts = segment.facts()
        bounds = [
            text or ""
            for column in facts.columns.values()
            for side in ("minimum", "maximum")
            for text in column[side].to_pylist()
        ]
        keys = np.concatenate([each.keys for each in facts.pairs.values()])
        if (
            any(MARK in text.lower() or str(ACCOUNT) == text for text in bounds)
            or np.isin(name_key, keys).any()
            or np.isin(account_key, keys).any()
        ):
            found.append(segment.name)
    return found


def traces_in_points(table: IndexedTable) -> int:
    return table.scan(f"account = {ACCOUNT}", use_index="require").count()


@pytest.fixture(scope="module", params=["person_erased", "person_erased_with_logs"])
def erased(
    request: pytest.FixtureRequest, golden: Golden, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The table after Hudi has erased the person, indexed before and after."""
    people = golden(request.param)
    path = people.put(tmp_path_factory.mktemp("erased"), "written")
    table = open_table(path)
    analyzed = {"analyzer": "standard"}
    indexed(table, ["id", Column(name="name", options=analyzed), "msg", "account"], name="people")
    # The traces are found while they exist, so that not finding them afterwards is significant.
    assert len(traces_in_terms(table)) == 1
    assert traces_in_points(table) == 1
    assert len(traces_in_segments(table)) == 1
    assert {file.suffix for file in traces_in_bytes([path / ".hoodie/.index"])} >= {".json"}

    people.put(path, "deleted")
    open_table(path).build(strategy="all").raise_for_failures()
    people.put(path, "cleaned")
    assert not any(f.stat().st_size for f in traces_of_parquet(path)), "Hudi did its part"
    return path


def traces_of_parquet(path: Path) -> list[Path]:
    """The base files that contain the person's row."""
    return [
        file
        for file in path.glob("*.parquet")
        if NAME in pq.read_table(file, columns=["name"])["name"].to_pylist()
    ]


def test_no_trace_of_the_person_is_left(
    erased: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = Path(shutil.copytree(erased, tmp_path / "table"))
    # The grace period of an hour does not apply: the person's base files no longer exist.
    settings = Settings(cache_folder=tmp_path / "cache")
    table = open_table(path, settings=settings)
    assert traces_in_bytes([path / ".hoodie/.index"]) != []
    assert len(expired_entries(table.hudi_table, settings)) > 0, "status reports it"
    assert table.scan(f"name = '{NAME}'").count() == 0
    caplog.clear()  # a query's own text may be logged

    with caplog.at_level(logging.DEBUG, logger="hudi_index_service"):
        table.clean()
        table.build(strategy="all")
        assert table.verify().problems == ()
    assert MARK not in caplog.text.lower()
    assert str(ACCOUNT) not in caplog.text

    assert expired_entries(table.hudi_table, settings) == {}
    assert traces_in_bytes([path / ".hoodie/.index", tmp_path / "cache"]) == []
    assert traces_in_terms(table) == []
    assert traces_in_segments(table) == []
    assert traces_in_points(table) == 0
    assert table.scan("name = 'Person 8'", use_index="require").count() == 1


def test_purging_leaves_no_trace_of_the_person(erased: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(erased, tmp_path / "table"))
    table = open_table(path, settings=Settings(cache_folder=tmp_path / "cache"))
    table.drop_index("people", purge=True)
    assert sorted(each.name for each in (path / ".hoodie/.index").iterdir()) == ["_service"]
    assert traces_in_bytes([path / ".hoodie/.index"]) == []
    assert list(path.rglob("*.segment")) == []


def test_traces_left_by_killed_builds_are_removed(erased: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(erased, tmp_path / "table"))
    settings = Settings(cache_folder=tmp_path / "cache", clean=CleanSettings(grace_seconds=3600))
    table = open_table(path, settings=settings)
    (remaining,) = table.hudi_table.snapshot().base_files()
    folder = next(
        entry.folder
        for entry in entries(Storage(path))
        if entry.manifest.base_file.path == remaining.path
    )
    # Left by a build of the person's base file, and by one that was killed while writing.
    (gone,) = expired_entries(table.hudi_table, settings)
    for place, name in ((gone, "data-000001-abc.pack"), (gone, "data-1.pack#1")):
        (path / place / name).write_bytes(NAME.encode())
    table.clean()
    assert traces_in_bytes([path / ".hoodie/.index"]) == []

    # Beside an existing base file the grace period applies, unless it is set to 0.
    (path / folder / "data-000001-abc.pack").write_bytes(NAME.encode())
    (path / folder / "data-000001-abc.pack#1").write_bytes(NAME.encode())
    table.clean()
    assert len(traces_in_bytes([path / ".hoodie/.index"])) == 2
    table.clean(grace_seconds=0)
    assert traces_in_bytes([path / ".hoodie/.index"]) == []
    assert [status.covered for status in table.status()] == [1]
