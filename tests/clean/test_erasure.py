"""A person's rows are deleted, compacted or clustered away, cleaned by Hudi, cleaned by us: then no
byte of them is left in the index, in caches, in records or in logs."""

import logging
import shutil
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.config import CleanSettings, Settings
from hudi_index_service.index.entry import Entry, EntryListing
from hudi_index_service.index.local_copy import packed_index
from hudi_index_service.index.lucene import jvm
from hudi_index_service.index.lucene.directory import packed_directory
from hudi_index_service.index.retention import expired_entries
from hudi_index_service.storage import Storage
from tests.hudi_tables import (
    NO_METADATA_TABLE,
    hudi_options,
    run_clustering,
    run_compaction,
    write,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "Zebediah Quuxley"
MARK = "zebediah"  # as every analyser has it, and part of every other spelling
ACCOUNT = 8_123_456_789_012_345_678  # the highest of all: it stands in the manifest, too
TRACES = (
    MARK.encode(),
    str(ACCOUNT).encode(),
    struct.pack("<q", ACCOUNT),
    struct.pack(">Q", ACCOUNT ^ (1 << 63)),  # as Lucene's points sort
)


def people(spark: "SparkSession", start: int, stop: int) -> "DataFrame":
    """Rows of many people; one of them is row 7."""
    return spark.range(start, stop).selectExpr(
        "cast(id AS string) AS id",
        f"if(id = 7, '{NAME}', concat('Person ', id)) AS name",
        f"if(id = 7, 'Mail from {NAME}, again', 'Mail') AS msg",
        f"if(id = 7, {ACCOUNT}L, id) AS account",
        "0L AS ts",
    )


def entries(storage: Storage) -> list[Entry]:
    listing = EntryListing(storage, "lucene", fresh=True)
    return [Entry(folder, listing.newest_valid(folder)) for folder in listing.folders()]


def traces_in_bytes(folders: Iterable[Path]) -> list[Path]:
    """The files that hold the person's name or account as they are, whatever the case."""
    found = []
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file():
                content = path.read_bytes().lower()
                if any(trace.lower() in content for trace in TRACES):
                    found.append(path)
    return found


def terms(storage: Storage, entry: Entry, settings: Settings) -> Iterator[str]:
    """Every term of an entry, decompressed."""
    jvm.attach()
    from org.apache.lucene.index import DirectoryReader, FieldInfo
    from org.apache.lucene.util import BytesRef, BytesRefIterator

    with packed_index(storage, entry, settings) as index:
        reader = DirectoryReader.open(packed_directory(index))
    for leaf in reader.leaves():
        for field in leaf.reader().getFieldInfos():
            found = leaf.reader().terms(FieldInfo.cast_(field).name)
            for term in [] if found is None else BytesRefIterator.cast_(found.iterator()):
                yield BytesRef.cast_(term).utf8ToString()
    reader.close()


def traces_in_terms(table: IndexedTable) -> list[str]:
    storage = table._table.storage
    return [
        entry.folder
        for entry in entries(storage)
        if any(MARK in term.lower() for term in terms(storage, entry, table._settings))
    ]


def traces_in_points(table: IndexedTable) -> int:
    return table.scan(f"account = {ACCOUNT}", use_index="require").count()


@pytest.fixture(scope="module", params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def erased(
    request: pytest.FixtureRequest, spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The table after Hudi has erased the person: indexed before and after."""
    path = tmp_path_factory.mktemp("erased") / "table"
    options = hudi_options(
        "people", request.param, **NO_METADATA_TABLE, **{"hoodie.clean.automatic": "false"}
    )
    write(people(spark, 0, 300).coalesce(1), path, options, "bulk_insert")
    table = open_table(path)
    analysed = {"analyzer": "standard"}
    table.create_index("people", ["id", Column(name="name", options=analysed), "msg", "account"])
    table.build(strategy="all").raise_for_failures()
    # The traces are found where they are: a search that finds nothing afterwards means something.
    assert len(traces_in_terms(table)) == 1
    assert traces_in_points(table) == 1
    assert {file.suffix for file in traces_in_bytes([path / ".hoodie/.index"])} >= {".json"}

    write(people(spark, 7, 8), path, options, "delete")
    if request.param == "MERGE_ON_READ":
        run_compaction(spark, path)
    else:
        run_clustering(spark, path)
    open_table(path).build(strategy="all").raise_for_failures()
    name = f"erased_{request.param.lower()}"
    spark.sql(f"create table {name} using hudi location '{path}'")
    spark.sql(
        f"call run_clean(table => '{name}', clean_policy => 'KEEP_LATEST_FILE_VERSIONS', "
        "file_versions_retained => 1)"
    ).collect()
    spark.sql(f"drop table {name}")
    assert not any(f.stat().st_size for f in traces_of_parquet(path)), "Hudi did its part"
    return path


def traces_of_parquet(path: Path) -> list[Path]:
    """The base files with the person's row."""
    import pyarrow.parquet as pq

    return [
        file
        for file in path.glob("*.parquet")
        if NAME in pq.read_table(file, columns=["name"])["name"].to_pylist()
    ]


def test_nothing_of_the_person_is_left(
    erased: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = Path(shutil.copytree(erased, tmp_path / "table"))
    # The grace period, an hour, is no excuse: the person's base files are gone.
    table = open_table(path, settings=Settings(cache_folder=tmp_path / "cache"))
    assert traces_in_bytes([path / ".hoodie/.index"]) != []
    assert len(expired_entries(table._table, table._settings)) > 0, "status tells"
    assert table.scan(f"name = '{NAME}'").count() == 0
    caplog.clear()  # a query's own text is the asker's

    with caplog.at_level(logging.DEBUG, logger="hudi_index_service"):
        table.clean()
        table.build(strategy="all")
        assert table.verify().problems == ()
    assert MARK not in caplog.text.lower()
    assert str(ACCOUNT) not in caplog.text

    assert expired_entries(table._table, table._settings) == []
    assert traces_in_bytes([path / ".hoodie/.index", tmp_path / "cache"]) == []
    assert traces_in_terms(table) == []
    assert traces_in_points(table) == 0
    assert table.scan("name = 'Person 8'", use_index="require").count() == 1


def test_nothing_of_a_purged_index_is_left(erased: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(erased, tmp_path / "table"))
    table = open_table(path, settings=Settings(cache_folder=tmp_path / "cache"))
    table.drop_index("people", purge=True)
    assert sorted(each.name for each in (path / ".hoodie/.index").iterdir()) == ["_service"]
    assert traces_in_bytes([path / ".hoodie/.index"]) == []


def test_what_killed_builds_left_of_the_person_goes_too(erased: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(erased, tmp_path / "table"))
    settings = Settings(cache_folder=tmp_path / "cache", clean=CleanSettings(grace_seconds=3600))
    table = open_table(path, settings=settings)
    (living,) = table._table.snapshot().base_files()
    folder = next(
        entry.folder
        for entry in entries(Storage(path))
        if entry.manifest.base_file.path == living.path
    )
    # Of an attempt to index the person's base file, and of one that died in the middle of it.
    (gone,) = expired_entries(table._table, settings)
    for place, name in ((gone.folder, "data-000001-abc.pack"), (gone.folder, "data-1.pack#1")):
        (path / place / name).write_bytes(NAME.encode())
    table.clean()
    assert traces_in_bytes([path / ".hoodie/.index"]) == []

    # Beside a living base file the grace period holds, unless it is asked to be none.
    (path / folder / "data-000001-abc.pack").write_bytes(NAME.encode())
    (path / folder / "data-000001-abc.pack#1").write_bytes(NAME.encode())
    table.clean()
    assert len(traces_in_bytes([path / ".hoodie/.index"])) == 2
    table.clean(grace_seconds=0)
    assert traces_in_bytes([path / ".hoodie/.index"]) == []
    assert [status.covered for status in table.status()] == [1]
