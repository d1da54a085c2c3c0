"""The life of a table under Hudi's own services: whatever takes base files or instants away,
entries go with them, answers stay Spark's, the next build covers the table again, a second clean is
idle."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import CleanSettings, Settings
from hudi_index_service.index.entry import EntryListing, entry_folder
from hudi_index_service.index.retention import expired_entries
from hudi_index_service.index.summary import SUMMARIES_FOLDER
from tests.hudi_tables import (
    NO_METADATA_TABLE,
    hudi_options,
    numbered_rows,
    read_rows,
    run_clustering,
    run_compaction,
    timeline_folder,
    write,
)
from tests.same_rows import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What makes Hudi's services run when they are called, and not before.
BY_HAND = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
AFTER_EACH_WRITE = {
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "1",
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
ODD, EVEN = "2026-01-02", "2026-01-01"
WHERE = "msg = 'Buying car 3' or amount between 30 and 50 or id = '7'"
COLUMNS = ["id", "msg", "amount", "ts", "dt"]


@dataclass(frozen=True)
class Stage:
    """The table after a service ran, and what Spark reads there.

    Attributes:
        gone: The base files that the service took away; all had been indexed.
    """

    path: Path
    gone: frozenset[str]
    matching: pa.Table
    rows: int


def by_spark(rows: "DataFrame") -> pa.Table:
    """What Spark returns, as Arrow."""
    return pa.Table.from_batches(rows._collect_as_arrow())


class Life:
    """A table with an index, and what befalls it."""

    def __init__(self, spark: "SparkSession", folder: Path, table_type: str) -> None:
        self._spark = spark
        self._folder = folder
        self._is_mor = table_type == "MERGE_ON_READ"
        self.path = folder / "table"
        # On merge-on-read, Hudi 1.2.0 cannot restore without it ("Unable to find completion time").
        metadata = {} if self._is_mor else NO_METADATA_TABLE
        self._options = hudi_options(
            "life", table_type, partition_column="dt", **metadata, **BY_HAND
        )
        self._name = f"life_{table_type.lower()}"
        self.stages: dict[str, Stage] = {}

    def begin(self) -> None:
        """The table with one base file a partition, all indexed, under the index ``all``."""
        write(numbered_rows(self._spark, 0, 60), self.path, self._options, "bulk_insert")
        self._spark.sql(f"create table {self._name} using hudi location '{self.path}'")
        open_table(self.path).create_index("all", ["id", "msg", "amount"])
        self.index()

    def index(self) -> None:
        """Every base file that a later write or service may take away has an entry."""
        open_table(self.path).build(strategy="all").raise_for_failures()

    def call(self, procedure: str, **arguments: object) -> None:
        """Runs one of Hudi's procedures on the table."""
        listed = ", ".join(f"{name} => {value!r}" for name, value in arguments.items())
        self._spark.sql(f"call {procedure}(table => '{self._name}', {listed})").collect()

    def upsert(self, version: int, **options: str) -> None:
        """Rewrites the odd ids' partition: a new base file for each of its file groups."""
        rows = numbered_rows(self._spark, 0, 60, version=version).where(f"dt = '{ODD}'")
        write(rows, self.path, {**self._options, **options})
        if self._is_mor:
            run_compaction(self._spark, self.path)
        self.index()

    def upsert_until_archived(self) -> None:
        """Hudi cleans and archives after each write; with a metadata table it takes a few until the
        instant is archived that wrote the even ids' base file."""
        (even,) = self.path.glob(f"{EVEN}/*.parquet")
        first = even.stem.rsplit("_", 1)[1]
        for version in range(5, 10):
            self.upsert(version, **AFTER_EACH_WRITE)
            if not list(timeline_folder(self.path).glob(f"{first}*")):
                return
        raise AssertionError("nothing was archived")

    def overwrite_partition(self, version: int) -> None:
        rows = numbered_rows(self._spark, 1, 40, version=version).where(f"dt = '{ODD}'")
        write(rows, self.path, self._options, "insert_overwrite")
        self.index()

    def delete_partition(self) -> None:
        none = numbered_rows(self._spark, 0, 1).where("id is null")
        options = {**self._options, "hoodie.datasource.write.partitions.to.delete": ODD}
        write(none, self.path, options, "delete_partition")
        # The cleaner spares what the commit before the last one replaced.
        write(numbered_rows(self._spark, 60, 62, version=5), self.path, self._options, "insert")

    def last_commit(self) -> str:
        return open_table(self.path)._table.completed_instants()[-1].requested

    def stage(self, name: str, service: Callable[[], object], *, takes_files: bool = True) -> None:
        """Lets the service run, and keeps a copy of what it made."""
        open_table(self.path).clean()
        before = self._base_files()
        service()
        gone = before - self._base_files()
        assert gone or not takes_files, name
        rows = read_rows(self._spark, self.path)
        copy = Path(shutil.copytree(self.path, self._folder / name))
        matching = by_spark(rows.where(WHERE).select(*COLUMNS))
        self.stages[name] = Stage(copy, frozenset(gone), matching, rows.count())

    def _base_files(self) -> set[str]:
        files = self.path.glob("2026*/*.parquet")
        return {str(path.relative_to(self.path)) for path in files}


@pytest.fixture(scope="module", params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def life(
    request: pytest.FixtureRequest, spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Life]:
    life = Life(spark, tmp_path_factory.mktemp("life"), request.param)
    life.begin()

    def clean_up_to_the_last_commit() -> None:
        life.call("run_clean", retain_commits=1)

    # Clustering replaces file groups; their base files go when the cleaner comes.
    run_clustering(spark, life.path)
    life.index()
    life.upsert(version=1)
    life.stage("clustered and cleaned", clean_up_to_the_last_commit)

    savepoint = life.last_commit()
    life.call("create_savepoint", commit_time=savepoint)
    life.upsert(version=2)
    life.stage(
        "rolled back",
        lambda: life.call("rollback_to_instant", instant_time=life.last_commit()),
    )
    life.upsert(version=3)
    life.stage("restored", lambda: life.call("rollback_to_savepoint", instant_time=savepoint))
    life.call("delete_savepoint", instant_time=savepoint)

    life.overwrite_partition(version=4)
    life.stage(
        "overwritten and cleaned",
        lambda: life.call(
            "run_clean", clean_policy="KEEP_LATEST_FILE_VERSIONS", file_versions_retained=1
        ),
    )
    life.stage("archived", life.upsert_until_archived, takes_files=False)
    life.delete_partition()
    life.stage("partition deleted and cleaned", clean_up_to_the_last_commit)
    yield life
    spark.sql(f"drop table {life._name}")


STAGES = [
    "clustered and cleaned",
    "rolled back",
    "restored",
    "overwritten and cleaned",
    "archived",
    "partition deleted and cleaned",
]


def assert_answers_are_sparks(table: IndexedTable, stage: Stage) -> None:
    assert_same_rows(table.scan(WHERE, columns=COLUMNS).to_arrow(), stage.matching)
    assert table.scan().count() == stage.rows


def entries(table: IndexedTable) -> set[str]:
    """The base files that have entries."""
    listing = EntryListing(table._table.storage, "lucene")
    return {listing.newest_valid(folder).base_file.path for folder in listing.folders()}


@pytest.mark.parametrize("retention", ["file-slice", "instant"])
@pytest.mark.parametrize("name", STAGES)
def test_entries_live_as_long_as_the_policy_says(
    life: Life, name: str, retention: str, tmp_path: Path
) -> None:
    stage = life.stages[name]
    settings = Settings(
        cache_folder=tmp_path / "cache",
        clean=CleanSettings(retention=retention),  # type: ignore[arg-type]
    )
    table = open_table(Path(shutil.copytree(stage.path, tmp_path / "table")), settings=settings)
    assert_answers_are_sparks(table, stage)
    instants = {instant.requested for instant in table._table.completed_instants()}
    living = {
        file.path
        for file in table._table.snapshot().base_files()
        if retention == "file-slice" or file.instant in instants
    }
    indexed = entries(table)
    assert stage.gone <= indexed
    expired = expired_entries(table._table, settings)
    assert len(expired) >= len(stage.gone)

    cleaning = table.clean()

    gone = {each.path for each in cleaning.removals if SUMMARIES_FOLDER not in each.path}
    assert gone == {file.path for entry in expired for file in entry.files}
    assert not entries(table) & stage.gone
    assert entries(table) >= indexed & living
    assert_answers_are_sparks(table, stage)

    build = table.build(strategy="all").raise_for_failures()
    assert {entry.base_file.path for entry in build.due} == living - indexed
    assert entries(table) >= living
    assert_answers_are_sparks(table, stage)

    assert (table.clean().removals, table.clean().folders) == ((), 0)
    assert table.build(strategy="all").due == ()
    assert table.verify().problems == ()


def test_an_archived_instant_takes_its_entry_along_only_by_the_rfcs_letter(
    life: Life, tmp_path: Path
) -> None:
    path = life.stages["archived"].path
    kept, taken = (
        Settings(cache_folder=tmp_path, clean=CleanSettings(retention=retention))  # type: ignore[arg-type]
        for retention in ("file-slice", "instant")
    )
    table = open_table(path, settings=taken)
    even = next(f for f in table._table.snapshot().base_files() if f.partition == EVEN)
    assert not any(even.instant in name.name for name in timeline_folder(path).iterdir())

    folder = entry_folder("lucene", even)
    assert folder not in {entry.folder for entry in expired_entries(table._table, kept)}
    (expired,) = [e for e in expired_entries(table._table, taken) if e.folder == folder]

    assert expired.reason == "its instant has left the active timeline"
    assert expired.bytes > 1000
    # Nothing that would go is built, by either strategy.
    for strategy in ("all", "incremental"):
        due = table.build(strategy=strategy, partitions=[EVEN], dry_run=True).due  # type: ignore[arg-type]
        assert due == ()
