"""The façade: a Hudi table with its indexes.

These are RFC-51's createIndex, buildIndex, dropIndex and getRowIdSet under the names a Python user
expects; the README has the table of both.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

import pyarrow as pa

from hudi_index_service import config
from hudi_index_service.build.executor import Executor, LocalExecutor
from hudi_index_service.build.record import BuildRecord, BuildRecords
from hudi_index_service.build.run import Build, Progress, run_build
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.clean import Cleaning, clean
from hudi_index_service.config import Settings
from hudi_index_service.definitions import Column, DefinitionStore, IndexDefinition, SeenTimeline
from hudi_index_service.errors import (
    ColumnNotFound,
    ConfigInvalid,
    EntryInvalid,
    IndexDefinitionInvalid,
    IndexExists,
    IndexServiceError,
    PermissionDenied,
    StorageFailed,
    TableFeatureUnsupported,
)
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.requirements import Requirement, by_index_type, requirement
from hudi_index_service.optimizer import QueryPlan, optimize
from hudi_index_service.read.planner import UseIndex, first_plan
from hudi_index_service.read.query import Query, bind_query
from hudi_index_service.read.reader_pool import ReaderPool
from hudi_index_service.read.scan import Planner, Scan
from hudi_index_service.read.slice_reader import SliceReader
from hudi_index_service.status import IndexStatus, index_status
from hudi_index_service.table import HudiTable, open_hudi_table
from hudi_index_service.verify import verify

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hudi_index_service.table.spark import SparkHudiReader

log = logging.getLogger(__name__)


def open_table(
    uri: str | Path,
    *,
    storage_options: Mapping[str, str] | None = None,
    spark: "SparkSession | None" = None,
    settings: Settings | None = None,
) -> "IndexedTable":
    """Opens a Hudi table.

    Args:
        uri: The table's base path: a local folder, ``s3://``, ``gs://`` or ``az://``.
        storage_options: Of a remote store, under object_store's keys: ``access_key_id``,
            ``secret_access_key``, ``region``, ``endpoint``, ``allow_http``, ``timeout``, ….
            What is not given comes from the environment (``AWS_…``).
        spark: A session with Hudi's bundle. Building runs on it, and tables that cannot be read
            right without Spark are read by it. Reading needs none otherwise.
        settings: Instead of the process's own (environment, YAML file).

    Raises:
        TableNotFound, NotAHudiTable, StorageUnsupported.
    """
    return IndexedTable(open_hudi_table(uri, storage_options), spark=spark, settings=settings)


class IndexedTable:
    """A Hudi table, its index definitions, and everything to be done with them.

    Safe to use from several threads for reading. Make it by `open_table`.
    """

    def __init__(
        self,
        table: HudiTable,
        *,
        spark: "SparkSession | None" = None,
        settings: Settings | None = None,
    ) -> None:
        self._table = table
        self._spark = spark
        self._settings = settings if settings is not None else config.settings()
        self._definitions = DefinitionStore(table.storage)
        self._pool = ReaderPool(table.storage, self._settings.cache_folder)

    def __repr__(self) -> str:
        return f"IndexedTable({self.uri!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the index readers kept open between queries."""
        self._pool.close()

    @property
    def uri(self) -> str:
        """The table's base path."""
        return self._table.storage.uri

    @property
    def name(self) -> str:
        """The table's name."""
        return self._table.name

    def schema(self) -> pa.Schema:
        """The table's schema, Hudi's meta columns first."""
        return self._table.schema()

    # --- definitions -------------------------------------------------------------------------

    def create_index(
        self,
        name: str,
        columns: Sequence[str | Column],
        *,
        using: str = "lucene",
        if_not_exists: bool = False,
    ) -> IndexDefinition:
        """Defines an index (RFC-51: createIndex). Nothing is built yet: that happens after the next
        clustering or compaction, or by `build`.

        Args:
            name: Letters, digits and _.
            columns: Column names, or `Column` with options of the index type.
            using: The index type.
            if_not_exists: Return the present definition if the name is taken.

        Raises:
            IndexExists, IndexTypeUnknown, ColumnNotFound, ColumnNotIndexable,
            IndexDefinitionInvalid, PermissionDenied.
            TableFeatureUnsupported: the table cannot be read without Spark, so no index would
                ever serve it.
        """
        live = {definition.name: definition for definition in self.indexes()}
        if name in live:
            if if_not_exists:
                return live[name]
            raise IndexExists(f"The table has an index named {name}.")
        refused = self._table.unsupported_feature()
        if refused is not None:
            raise TableFeatureUnsupported(
                f"{self.uri} cannot be indexed: {refused}",
                remedy="Query it through Spark: an index would never serve it.",
            )
        kind = index_type(using)
        asked = [self._column(column) for column in columns]
        if not asked:
            raise IndexDefinitionInvalid(
                f"Index {name} names no column.", remedy="Name at least one column."
            )
        repeated = {c.name for c in asked if [d.name for d in asked].count(c.name) > 1}
        if repeated:
            raise IndexDefinitionInvalid(
                f"Index {name} names column {sorted(repeated)[0]} twice.",
                remedy="Name each column once.",
            )
        schema = self.schema()
        for column in asked:
            kind.fields(column.name, schema.field(column.name).type, column.options)
        return self._definitions.create(name, kind.name, asked, self._seen())

    def _column(self, column: str | Column) -> Column:
        asked = Column(name=column) if isinstance(column, str) else column
        names = self.schema().names
        same = [name for name in names if name.lower() == asked.name.lower()]
        if asked.name not in names and len(same) != 1:
            raise ColumnNotFound(
                f"Column {asked.name} is not in the schema of {self.uri}.",
                remedy=f"The columns are: {', '.join(names)}.",
            )
        name = asked.name if asked.name in names else same[0]
        return asked.model_copy(update={"name": name})

    def _seen(self) -> SeenTimeline:
        instants = [instant.requested for instant in self._table.completed_instants()]
        return SeenTimeline(start=min(instants, default=""), instants=tuple(instants))

    def drop_index(self, name: str, *, purge: bool = False) -> None:
        """Drops an index: it serves no query from now on; its entries go with a later clean.

        Args:
            purge: Remove the entries that no other index uses at once.

        Raises:
            IndexNotFound, PermissionDenied.
        """
        self._definitions.drop(name)
        if purge:
            clean(self._table, self._live_columns(), self._settings, grace_seconds=0)

    def indexes(self) -> tuple[IndexDefinition, ...]:
        """The live index definitions, by name."""
        return self._definitions.live()

    # --- building and keeping ----------------------------------------------------------------

    def build(
        self,
        *,
        strategy: Strategy | Literal["incremental", "all"] = Strategy.INCREMENTAL,
        instant: str | None = None,
        partitions: Sequence[str] | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Build:
        """Builds the entries that are due (RFC-51: buildIndex, "optimize table").

        Runs on Spark if the table was opened with a session, else in local threads. Failures of
        single base files stand in the result; `Build.raise_for_failures` turns them into an error.

        Args:
            strategy: INCREMENTAL: base files that clustering or compaction wrote since the index
                was defined; ALL: every base file of the present snapshot.
            instant: Only base files written by this instant.
            partitions: Only these partitions (paths relative to the table).
            dry_run: Only say what is due.
            progress: Called with (done, all) while it runs.

        Raises:
            BuildInProgress, PermissionDenied, TableFeatureUnsupported.
            BuildFailed: the Spark job as a whole failed.
            ConfigInvalid: there is no such strategy.
        """
        return run_build(
            self._table,
            self._requirements(),
            strategy=Strategy.named(strategy),
            executor=self._executor(),
            settings=self._settings,
            instant=instant,
            partitions=partitions,
            dry_run=dry_run,
            progress=progress,
        )

    def _executor(self) -> Executor:
        if self._spark is None:
            return LocalExecutor(self._settings.build.parallelism)
        from hudi_index_service.build.spark import SparkExecutor

        return SparkExecutor(self._spark)

    def builds(self) -> list[BuildRecord]:
        """The recorded builds, newest first."""
        stale_seconds = self._settings.build.stale_seconds
        return BuildRecords(self._table.storage, stale_seconds=stale_seconds).all()

    def status(self) -> list[IndexStatus]:
        """For every index, how much of the present snapshot it covers (RFC-51: "show indexing").

        Raises:
            TableFeatureUnsupported: the table cannot be read whole here.
        """
        return index_status(self._table, self._requirements())

    def clean(self, *, dry_run: bool = False) -> Cleaning:
        """Removes entries whose base file (or instant) has expired, superseded generations, what
        dead builds left, and empty folders.

        Raises:
            PermissionDenied: no write access below ``.hoodie/.index``.
        """
        return clean(self._table, self._live_columns(), self._settings, dry_run=dry_run)

    def verify(self) -> list[EntryInvalid]:
        """Reads every entry of the present snapshot whole, and compares checksums and the base
        files' footers. Returns what is wrong; queries scan those slices.

        Raises:
            TableFeatureUnsupported: the table cannot be read whole here.
        """
        return verify(self._table, by_index_type(self._requirements()), self._settings)

    def _requirements(self) -> list[Requirement]:
        """What the live definitions ask for. One that cannot be met here (its index type is not
        installed, a column changed its type) serves nothing, and says so in the log."""
        found = []
        schema = self.schema()
        for definition in self.indexes():
            try:
                found.append(requirement(definition, schema))
            except IndexServiceError as error:
                log.warning("Index %s is passed over: %s", definition.name, error)
        return found

    def _live_columns(self) -> dict[str, set[str]]:
        live: dict[str, set[str]] = {}
        for definition in self.indexes():
            names = {column.name for column in definition.columns}
            live.setdefault(definition.index_type, set()).update(names)
        return live

    # --- reading -----------------------------------------------------------------------------

    def scan(
        self,
        where: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        use_index: UseIndex = "auto",
    ) -> Scan:
        """The rows for which `where` is TRUE, as Spark SQL would return them.

        Args:
            where: A Spark SQL predicate; None for every row.
            columns: Column names in the wanted order; None for all.
            limit: At most this many rows; reading stops there.
            use_index: ``auto``; ``never`` scans; ``require`` raises rather than scan a slice.

        Raises:
            ColumnNotFound, PredicateInvalid, PredicateUnsupported.
            ConfigInvalid: `limit` is negative, or `use_index` none of its words.
        """
        if use_index not in ("auto", "never", "require"):
            raise ConfigInvalid(
                f"There is no use_index={use_index!r}.", remedy="Use auto, never or require."
            )
        if limit is not None and limit < 0:
            raise ConfigInvalid(f"limit={limit} is negative.", remedy="Use 0 or more.")
        query = bind_query(where, columns, self.schema(), time_zone=self._time_zone())
        planner = Planner(
            plan=lambda asked: self._plan(asked, use_index),
            reader=self._slice_reader,
            spark=self._spark_reader(),
        )
        return Scan(query, planner, where=where, limit=limit)

    def _plan(self, query: Query, use_index: UseIndex) -> QueryPlan:
        try:
            requirements = self._requirements()
        except (PermissionDenied, StorageFailed) as error:
            # Whoever may read the table, but not its index folder, gets the answer all the same.
            log.warning("%s is read without index: %s", self.uri, error)
            requirements = []
        plan = first_plan(
            self._table.storage,
            requirements,
            self._table.snapshot(),
            query.normal_form,
            use_index,
        )
        off = not self._table.index_reading_enabled()
        return optimize(replace(plan, switched_off=off), self._settings)

    def _slice_reader(self, query: Query, plan: QueryPlan) -> SliceReader:
        return SliceReader(self._table, query, plan.snapshot.instant, self._pool, self._settings)

    def _spark_reader(self) -> "SparkHudiReader | None":
        if self._spark is None:
            return None
        from hudi_index_service.table.spark import SparkHudiReader

        return SparkHudiReader(self._spark, self.uri)

    def _time_zone(self) -> str:
        if self._spark is None:
            return self._settings.read.time_zone
        return str(self._spark.conf.get("spark.sql.session.timeZone"))
