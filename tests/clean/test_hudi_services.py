"""A table under Hudi's own services: if a service removes base files or instants, their entries are
removed too, answers equal Spark's, the next build covers the table again, and a second clean does
nothing."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import CleanSettings, Settings
from hudi_index_service.index.metadata.entry import EntryListing
from hudi_index_service.index.metadata.retention import expired_entries
from hudi_index_service.index.metadata.summary import SUMMARIES_FOLDER
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

pytestmark = pytest.mark.slow

# Hudi's services run only when they are called.
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
    """The table after a service ran, and what Spark reads from it.

    Attributes:
        gone: The base files that the service removed; all had been indexed.
    """

    path: Path
    gone: frozenset[str]
    matching: pa.Table
    rows: int


def by_spark(rows: DataFrame) -> pa.Table:
    """Spark's result as Arrow."""
    return pa.Table.from_batches(rows._collect_as_arrow())


class TableUnderServices:
    """A table with an index, and the operations on it."""

    def __init__(self, spark: SparkSession, folder: Path, table_type: str) -> None:
        self._spark = spark
        self._folder = folder
        self._is_mor = table_type == "MERGE_ON_READ"
        self.path = folder / "table"
        # On merge-on-read, Hudi 1.2.0 cannot restore without a metadata table ("Unable to find
        # completion time").
        metadata = {} if self._is_mor else NO_METADATA_TABLE
        self._options = hudi_options(
            "life", table_type, partition_column="dt", **metadata, **BY_HAND
        )
        self._name = f"life_{table_type.lower()}"
        self.stages: dict[str, Stage] = {}

    def begin(self) -> None:
        """Writes the table with one base file per partition, all indexed by the index ``all``."""
        write(numbered_rows(self._spark, 0, 60), self.path, self._options, "bulk_insert")
        self._spark.sql(f"create table {self._name} using hudi location '{self.path}'")
        open_table(self.path).create_index("all", ["id", "msg", "amount"])
        self.index()

    def index(self) -> None:
        """Builds an entry for every base file that a later write or service may remove."""
        open_table(self.path).build(strategy="all").raise_for_failures()

    def call(self, procedure: str, **arguments: object) -> None:
        """Runs one of Hudi's procedures on the table."""
        listed = ", ".join(f"{name} => {value!r}" for name, value in arguments.items())
        self._spark.sql(f"call {procedure}(table => '{self._name}', {listed})").collect()

    def upsert(self, version: int, **options: str) -> None:
        """Rewrites the odd ids' partition: a new base file in each of its file groups."""
        rows = numbered_rows(self._spark, 0, 60, version=version).where(f"dt = '{ODD}'")
        write(rows, self.path, {**self._options, **options})
        if self._is_mor:
            run_compaction(self._spark, self.path)
        self.index()

    def upsert_until_archived(self) -> None:
        """Hudi cleans and archives after each write; with a metadata table it takes several writes
        until the instant that wrote the even ids' base file is archived."""
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
        # The cleaner keeps what the commit before the last one replaced.
        write(numbered_rows(self._spark, 60, 62, version=5), self.path, self._options, "insert")

    def last_commit(self) -> str:
        return open_table(self.path).hudi_table.completed_instants()[-1].requested

    def stage(self, name: str, service: Callable[[], object], *, takes_files: bool = True) -> None:
        """Runs the service, and keeps a copy of the result."""
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
def history(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TableUnderServices]:
    history = TableUnderServices(spark, tmp_path_factory.mktemp("life"), request.param)
    history.begin()

    def clean_up_to_the_last_commit() -> None:
        history.call("run_clean", retain_commits=1)

    # Clustering replaces file groups; the cleaner removes their base files later.
    run_clustering(spark, history.path)
    history.index()
    history.upsert(version=1)
    history.stage("clustered and cleaned", clean_up_to_the_last_commit)

    savepoint = history.last_commit()
    history.call("create_savepoint", commit_time=savepoint)
    history.upsert(version=2)
    history.stage(
        "rolled back",
        lambda: history.call("rollback_to_instant", instant_time=history.last_commit()),
    )
    history.upsert(version=3)
    history.stage("restored", lambda: history.call("rollback_to_savepoint", instant_time=savepoint))
    history.call("delete_savepoint", instant_time=savepoint)

    history.overwrite_partition(version=4)
    history.stage(
        "overwritten and cleaned",
        lambda: history.call(
            "run_clean", clean_policy="KEEP_LATEST_FILE_VERSIONS", file_versions_retained=1
        ),
    )
    history.stage("archived", history.upsert_until_archived, takes_files=False)
    history.delete_partition()
    history.stage("partition deleted and cleaned", clean_up_to_the_last_commit)
    yield history
    spark.sql(f"drop table {history._name}")


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
    """The base files with entries."""
    listing = EntryListing(table.hudi_table.storage, "lucene")
    return {listing.newest_valid(folder).base_file.path for folder in listing.folders()}


@pytest.mark.parametrize("retention", ["file-slice", "instant"])
@pytest.mark.parametrize("name", STAGES)
def test_entries_are_kept_as_long_as_the_policy_says(
    history: TableUnderServices, name: str, retention: str, tmp_path: Path
) -> None:
    stage = history.stages[name]
    settings = Settings(
        cache_folder=tmp_path / "cache",
        clean=CleanSettings(retention=retention),  # type: ignore[arg-type]
    )
    table = open_table(Path(shutil.copytree(stage.path, tmp_path / "table")), settings=settings)
    assert_answers_are_sparks(table, stage)
    instants = {instant.requested for instant in table.hudi_table.completed_instants()}
    living = {
        file.path
        for file in table.hudi_table.snapshot().base_files()
        if retention == "file-slice" or file.instant in instants
    }
    indexed = entries(table)
    assert stage.gone <= indexed
    expired = expired_entries(table.hudi_table, settings)
    assert len(expired) >= len(stage.gone)

    cleaning = table.clean()

    gone = {each.path for each in cleaning.removals if SUMMARIES_FOLDER not in each.path}
    assert gone == {file.path for files in expired.values() for file in files}
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
