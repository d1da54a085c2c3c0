"""The façade: a Hudi table with its indexes.

These are RFC-51's createIndex, buildIndex, dropIndex and getRowIdSet under the names a Python user
expects; the README has the table of both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, get_args, overload

import pyarrow as pa

from hudi_index_service import config
from hudi_index_service.build.scope import partitions_where
from hudi_index_service.build.strategy import NO_BACKFILL, UNLIMITED, Budget, Strategy
from hudi_index_service.catalog import table_location
from hudi_index_service.columns import require_list
from hudi_index_service.config import RetentionPolicy, Settings
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.hudi import HudiTable, open_hudi_table
from hudi_index_service.index.metadata.definitions import Column
from hudi_index_service.index.metadata.requirements import requirements
from hudi_index_service.maintain import DEFAULT_SAMPLE
from hudi_index_service.maintain.define import DefinedIndexes
from hudi_index_service.optimizer.history.history import stored_history
from hudi_index_service.process import awaited, awaited_methods
from hudi_index_service.read.freshness import Freshness
from hudi_index_service.read.planner import QueryType, ScanOptions, UseIndex
from hudi_index_service.read.queries import TableQueries
from hudi_index_service.read.query import Where
from hudi_index_service.read.scan import Scan

# Heavy modules of building and maintaining are imported where they are called, so that a process
# that only reads starts sooner.
if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hudi_index_service.build.executor import Executor
    from hudi_index_service.build.outcomes import Build
    from hudi_index_service.build.run import Details, Progress, RetryFailed
    from hudi_index_service.index.metadata.build_records import BuildRecord, BuildRecords
    from hudi_index_service.maintain.clean import Cleaning
    from hudi_index_service.maintain.drop import Dropped
    from hudi_index_service.maintain.prewarm import Prewarmed
    from hudi_index_service.maintain.recommend.results import Advice, Proposal
    from hudi_index_service.maintain.status import TableStatus
    from hudi_index_service.maintain.verify import Verification
    from hudi_index_service.optimizer.history.record import HistoryShape
    from hudi_index_service.read.keys.tag_location import Keys
    from hudi_index_service.read.ranked_search import Scoring


@awaited
def open_table(
    uri: str | Path,
    *,
    storage_options: Mapping[str, str] | None = None,
    spark: "SparkSession | None" = None,
    settings: Settings | None = None,
) -> "IndexedTable":
    """Opens a Hudi table.

    Args:
        uri: The table's base path: a local folder, ``s3://``, ``gs://``, ``az://`` or ``hdfs://``;
            or its name in a catalog: ``glue://db.table``, ``hive://host:9083/db.table``, or with
            `spark` ``db.table``. See `catalog`.
        storage_options: Options of an object store, under object_store's keys: ``access_key_id``,
            ``secret_access_key``, ``region``, ``endpoint``, ``allow_http``, ``timeout``, ….
            Missing options come from the environment (``AWS_…``). For HDFS: Hadoop's keys, and
            ``kerberos_principal``, ``kerberos_keytab``, ``kerberos_cache``; missing ones come
            from the files in ``HADOOP_CONF_DIR``.
        spark: A session with Hudi's bundle. Builds run on it, and it reads the tables that cannot
            be read correctly without Spark. Other reads need no session.
        settings: Settings in place of the process's own (environment, YAML file).

    Raises:
        IndexServiceError: TableNotFound, NotAHudiTable, StorageUnsupported; for a name also
            TableAmbiguous, CatalogFailed, PermissionDenied; ConfigInvalid: an argument of a
            wrong type.
    """
    location = table_location(uri, spark)
    return IndexedTable(open_hudi_table(location, storage_options), spark=spark, settings=settings)


@awaited_methods
class IndexedTable(DefinedIndexes):
    """A Hudi table and its indexes: define, build, maintain and query them.

    Several threads may read through one instance; an exit of the process waits some seconds for the
    calls of daemon threads. Create it with `open_table`.
    """

    def __init__(
        self,
        table: HudiTable,
        *,
        spark: "SparkSession | None" = None,
        settings: Settings | None = None,
    ) -> None:
        super().__init__(table)
        self._spark = spark
        self._given_settings = config.effective(settings)
        self._settings = self._given_settings
        self._queries = TableQueries(table, self._read_definitions, self._settings, spark)

    def __repr__(self) -> str:
        return f"IndexedTable({self.uri!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the index readers that stay open between queries, and writes the query history
        (setting `history.enabled`)."""
        self._queries.close()

    @property
    def uri(self) -> str:
        """The table's base path."""
        return self._table.storage.uri

    @property
    def name(self) -> str:
        """The table's name."""
        return self._table.name

    @property
    def hudi_table(self) -> HudiTable:
        """The underlying Hudi table, read only: its timeline and snapshots."""
        return self._table

    def schema(self) -> pa.Schema:
        """The table's schema, Hudi's meta columns first."""
        return self._table.schema()

    def drop_index(
        self,
        name: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        purge: bool = False,
    ) -> "Dropped":
        """Drops an index, or removes columns from every index (RFC-51: dropIndex). Queries stop
        using it at once; later builds and cleans delete its entries. An entry shared with other
        indexes keeps the values of the dropped columns until `refresh` or `purge`.

        Args:
            name: The index.
            columns: In place of a name: columns to remove from every index.
            purge: Delete at once all indexed data that no live index needs; see `purge_unasked`.
                The result lists what could not be deleted; drop again with `purge` to finish.

        Raises:
            IndexServiceError: IndexNotFound, ConfigInvalid, PermissionDenied; see
                `maintain.drop.drop`. With `purge`, an index that was dropped before is
                purged.
        """
        from hudi_index_service.maintain.drop import drop, purge_unasked

        dropped = drop(self._table, self._definitions, name, columns, again=purge)
        if not purge:
            return dropped
        purged = purge_unasked(self._table, self._executor(), self._settings)
        self._queries.pool.close()  # open files keep deleted bytes on the disk
        return replace(dropped, purge=purged)

    def partitions(self, where: str | None = None) -> tuple[str, ...]:
        """The partitions with base files, sorted; with `where`, a predicate over the partition
        columns, those for which it is TRUE. Pass the result to `build`.

        Raises:
            IndexServiceError: PredicateInvalid, PredicateUnsupported, ColumnNotFound,
                TableFeatureUnsupported; see `partitions_where`.
        """
        return partitions_where(
            self._table, where, time_zone=self._queries.time_zone, settings=self._settings.read
        )

    def build(
        self,
        *,
        strategy: Strategy | Literal["incremental", "all", "refresh"] = Strategy.INCREMENTAL,
        instant: str | None = None,
        partitions: Sequence[str] | None = None,
        budget: Budget = UNLIMITED,
        retry_failed: "RetryFailed" = "now",
        backfill: timedelta = NO_BACKFILL,
        dry_run: bool = False,
        with_estimate: bool = True,
        progress: "Progress | None" = None,
        details: "Details | None" = None,
    ) -> "Build":
        """Builds the entries that are due (RFC-51: buildIndex, "optimize table"), on Spark if the
        table was opened with a session, otherwise in local threads. The result lists base files
        that failed; `Build.raise_for_failures` turns them into an error.

        Args:
            strategy, retry_failed: See `Strategy` and `RetryFailed`.
            instant: Only base files written by this instant.
            partitions: Only these, by path or pattern; see `partitions_in_scope`.
            budget: When to stop. The next build continues with the rest.
            backfill: How much of what was there before INCREMENTAL builds, too; see `selector`.
            dry_run: Build nothing; return what is due and, `with_estimate`, what it would cost.
            progress, details: Called during the build; see `Progress` and `Details`.

        Raises:
            IndexServiceError: BuildInProgress, BuildFailed, NativeModuleMissing,
                PermissionDenied, ConfigInvalid, TableFeatureUnsupported; see
                `run_build`.
        """
        from hudi_index_service.build.run import run_build

        return run_build(
            self._table,
            self._read_definitions(),
            strategy=Strategy.named(strategy),
            executor=self._executor(),
            settings=self._settings,
            instant=instant,
            partitions=partitions,
            budget=budget,
            retry_failed=retry_failed,
            backfill=backfill,
            dry_run=dry_run,
            with_estimate=with_estimate,
            progress=progress,
            details=details,
        )

    def refresh(
        self,
        name: str,
        *,
        dry_run: bool = False,
        progress: "Progress | None" = None,
        details: "Details | None" = None,
    ) -> "Build":
        """Updates an index to match its definition, by the strategy REFRESH (see `Strategy`). The
        arguments are those of `build`. Raises IndexNotFound, and what `build` raises."""
        from hudi_index_service.build.run import run_build

        definition = self._definitions.get(name)
        return run_build(
            self._table,
            self._read_definitions(),
            strategy=Strategy.REFRESH,
            executor=self._executor(),
            settings=self._settings,
            indexes=(definition.name,),
            dry_run=dry_run,
            progress=progress,
            details=details,
        )

    def cancel(self) -> str | None:
        """Cancels the table's running build, in this process or another, and returns its id; None
        if no build is running. See `BuildRecords.request_cancel`."""
        return self._records.request_cancel()

    def builds(self, limit: int | None = None) -> "list[BuildRecord]":
        """The recorded builds, newest first; at most `limit`."""
        return self._records.all(limit)

    def status(self) -> "TableStatus":
        """The state of the table's indexes (RFC-51: "show indexing"): for each index, its coverage
        of the latest snapshot, what is due and since when; the last builds; entries whose base file
        is gone. Raises TableFeatureUnsupported."""
        from hudi_index_service.maintain.coverage import table_status

        required = requirements(self.indexes(), self.schema())
        return table_status(self._table, required, self._records, self._settings)

    def clean(self, *, dry_run: bool = False, grace_seconds: float | None = None) -> "Cleaning":
        """Deletes entries whose base file (or instant) has expired, superseded generations,
        leftovers of dead builds, empty folders, and this user's cached copies of them. Raises
        PermissionDenied.

        Args:
            dry_run: Delete nothing; return what would be deleted, and why.
            grace_seconds: Grace period in place of the setting; 0 deletes at once what no base
                file, live definition or running build needs.
        """
        from hudi_index_service.maintain.clean import clean

        cleaning = clean(self._table, self._settings, dry_run=dry_run, grace_seconds=grace_seconds)
        if not dry_run:
            self._queries.pool.close()  # open files keep deleted bytes on the disk
        return cleaning

    def retain(self, policy: RetentionPolicy | None) -> None:
        """Sets how long `build`, `clean` and `status` take entries to be kept: as long as their
        base file (``file-slice``), or their instant, too (``instant``); None for the setting
        ``clean.retention``. Raises ConfigInvalid for another policy."""
        if policy not in (None, *get_args(RetentionPolicy)):
            raise ConfigInvalid(
                f"Unknown value: policy={policy!r}.", remedy="Use file-slice, instant or None."
            )
        own = self._given_settings
        chosen = own.clean.retention if policy is None else policy
        self._settings = own.model_copy(
            update={"clean": own.clean.model_copy(update={"retention": chosen})}
        )

    def verify(
        self, *, repair: bool = False, sample: int = DEFAULT_SAMPLE, fraction: float = 1.0
    ) -> "Verification":
        """Reads every entry of the latest snapshot in full: compares checksums and base file
        footers, lets the index type check its own structure, and looks up sampled rows.

        Args:
            repair: Rebuild damaged entries where `build` would, and delete the damaged ones.
            sample: How many rows of each base file to look up, by each of their values.
            fraction: The share of the base files to verify, from 0 to 1, chosen at random.

        Raises:
            IndexServiceError: TableFeatureUnsupported, NativeModuleMissing,
                ConfigInvalid, BuildInProgress, BuildFailed, PermissionDenied; see
                `maintain.verify.verify`.
        """
        from hudi_index_service.maintain.verify import verify

        return verify(
            self._table,
            self._read_definitions(),
            self._settings,
            sample=sample,
            fraction=fraction,
            executor=self._executor() if repair else None,
        )

    @cached_property
    def _records(self) -> "BuildRecords":
        from hudi_index_service.index.metadata.build_records import BuildRecords

        return BuildRecords(self._table.storage, stale_seconds=self._settings.build.stale_seconds)

    def _executor(self) -> "Executor":
        if self._spark is None:
            from hudi_index_service.build.executor import LocalExecutor

            return LocalExecutor(self._settings.build.parallelism)
        from hudi_index_service.build.spark import SparkExecutor

        return SparkExecutor(self._spark)

    def scan(
        self,
        where: Where | None = None,
        *,
        columns: Sequence[str] | None = None,
        as_of: str | None = None,
        limit: int | None = None,
        query_type: QueryType = "snapshot",
        use_index: UseIndex = "auto",
        fast: bool = False,
        only_if_covered_to: str | None = None,
        wait: float = 0.0,
    ) -> Scan:
        """The rows for which `where` is TRUE, as Spark SQL would return them.

        Args:
            where: A Spark SQL predicate, or what makes one (`Where`); None for every row.
            columns: Column names, in the order of the result; None for all.
            as_of: A time to travel to, for rows and schema, such as ``2026-01-31 08:00:00.000``;
                None for now. `instant_of` lists the forms.
            limit: Maximum number of rows; reading stops there.
            query_type, use_index: See `ScanOptions`.
            fast: Leave out the rows of slices without an entry that serves `where`, as the schema
                of the rows and `Scan.left_out` then say.
            only_if_covered_to: Answer only if the table has this instant, and such an entry for
                each base file written by then that may have rows. In the forms of `as_of`.
            wait: The seconds to wait for that, at each call of a method.

        Raises:
            IndexServiceError: ColumnNotFound, PredicateInvalid, PredicateUnsupported,
                ConfigInvalid, TableFeatureUnsupported, SnapshotUnavailable; see
                `TableQueries.scan`. Methods of the result raise NotCovered, and IndexRequired
                if no index serves a query that is `fast` or has `only_if_covered_to`.
        """
        freshness = Freshness.of(fast=fast, only_if_covered_to=only_if_covered_to, wait=wait)
        options = ScanOptions.of(as_of, query_type, use_index, freshness)
        return self._queries.scan(where, columns, options, limit=limit)

    def prewarm(
        self,
        columns: Sequence[str] = (),
        *,
        partitions: Sequence[str] | None = None,
        progress: "Progress | None" = None,
    ) -> "Prewarmed":
        """Makes the next queries of this process fast: opens the entries of the latest snapshot,
        which hold the footers of their base files, and keeps the pages of some columns in memory.
        Nothing that queries keep is given up for it; the result says what did not fit. A
        `Cancellation` ends it.

        Args:
            columns: The columns whose pages are kept, as in `scan`; by default none. Only of local
                tables.
            partitions: Only these, by path or pattern; see `partitions_in_scope`. `partitions`
                finds those of a condition.
            progress: Called with the number of base files done, and the number of all.

        Raises:
            IndexServiceError: ColumnNotFound, ConfigInvalid, TableFeatureUnsupported,
                QueryCancelled; see `maintain.prewarm.prewarm`.
        """
        from hudi_index_service.maintain.prewarm import prewarm

        return prewarm(self._table, self._queries, columns, partitions, progress)

    def search(
        self,
        column: str,
        text: str,
        *,
        k: int = 10,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        words: Literal["any", "all"] = "any",
        as_of: str | None = None,
        query_type: QueryType = "snapshot",
        fast: bool = False,
        only_if_covered_to: str | None = None,
        wait: float = 0.0,
    ) -> pa.Table:
        """The `k` rows that match best by BM25, the best first, with a last column ``_score``; see
        `SearchRequest.rows`.

        Args:
            column: A string column of an index with the options ``analyzer`` and ``ranked``.
            text: The search text; the analyzer splits it into words.
            words: Return rows with ``any`` or with ``all`` of the words.
            where, columns, as_of, query_type: See `scan`.
            fast, only_if_covered_to, wait: See `scan`. Rows that are left out count for no score.

        Raises:
            IndexServiceError: PredicateUnsupported, PredicateInvalid, ColumnNotFound,
                ConfigInvalid, SnapshotUnavailable, SnapshotChanged, NotCovered, IndexRequired,
                TableFeatureUnsupported; see `SearchRequest.rows`.
        """
        freshness = Freshness.of(fast=fast, only_if_covered_to=only_if_covered_to, wait=wait)
        options = ScanOptions.of(as_of, query_type, freshness=freshness)
        request = self._queries.search(
            column, text, words, options, k=k, where=where, columns=columns
        )
        return request.rows()

    def scoring(
        self,
        column: str,
        text: str,
        *,
        words: Literal["any", "all"] = "any",
        as_of: str | None = None,
        query_type: QueryType = "snapshot",
    ) -> "Scoring":
        """A scorer that gives single texts the scores that `search` gives rows, for callers that
        have the rows already. Arguments and errors are those of `search`."""
        options = ScanOptions.of(as_of, query_type)
        return self._queries.search(column, text, words, options).scoring()

    @overload
    def tag_location(self, keys: "Keys", *, spark: "SparkSession | None" = None) -> pa.Table: ...

    @overload
    def tag_location(self, keys: "DataFrame") -> "DataFrame": ...

    def tag_location(
        self, keys: "Keys | DataFrame", *, spark: "SparkSession | None" = None
    ) -> "pa.Table | DataFrame":
        """Locates record keys in the latest snapshot, as Hudi's writers need it ("tagLocation").
        `TableQueries.locations` describes the method, and the location of keys in log files.

        Args:
            keys: See `Keys`; or a Spark DataFrame with such columns, which the driver never holds.
            spark: Locate all keys in one job of this session, whose executors need this package;
                None uses threads of this process.

        Returns:
            ``record_key, partition, file_id, instant, row_id``; see `ANSWER`. For a DataFrame of
            keys a DataFrame, else a table in the order given.

        Raises:
            IndexServiceError: ConfigInvalid, TableFeatureUnsupported, SnapshotChanged;
                see `TableQueries.locations`.
        """
        return self._queries.locations(keys, spark)

    def history(self) -> "list[HistoryShape]":
        """The outcome of this user's queries on the table, by shape (columns and operators, without
        literals), the most recent first. See the section `history` of the settings."""
        return stored_history(self._settings).shapes(self.uri)

    def propose(
        self,
        *,
        using: str = "btree",
        add: Sequence[str | Column] = (),
        drop: Sequence[str] = (),
    ) -> "Proposal":
        """Proposes columns to index, for a table without queries to learn from: each column with
        the reason for or against it, and what it costs by a sample built for real. Changes nothing.

        Args:
            using: The index type. btree needs no Java and takes least space; lucene also answers
                patterns in the middle of a text.
            add, drop: Columns to index (with options, in an index of type lucene), and to leave
                out, whatever speaks for or against them.

        Raises:
            IndexServiceError: ColumnNotFound, ColumnNotIndexable,
                IndexDefinitionInvalid, IndexTypeUnknown, TableFeatureUnsupported,
                PermissionDenied, SnapshotChanged; see `maintain.recommend.by_rows.propose`.
        """
        from hudi_index_service.maintain.recommend.by_rows import propose

        require_list(add, "add")
        require_list(drop, "drop")
        columns = [Column(name=each) if isinstance(each, str) else each for each in add]
        return propose(
            self._table,
            self.indexes(),
            self._executor(),
            self._settings,
            using=using,
            add=columns,
            drop=drop,
        )

    def advise(self) -> "Advice":
        """Advice on making queries cheaper: columns to index, unused indexes, writer settings, each
        with its evidence, from the history of this user's queries. Changes nothing. Raises what
        `maintain.recommend.by_history.advise` raises, such as TableFeatureUnsupported."""
        from hudi_index_service.maintain.recommend.by_history import advise

        history = stored_history(self._settings)
        return advise(self._table, self.indexes(), self.builds(), history, self._settings)

    def forget_history(self) -> int:
        """Deletes the history of this user's queries on the table, and returns the number of shapes
        deleted. Raises HistoryUnavailable."""
        return stored_history(self._settings).forget(self.uri)
