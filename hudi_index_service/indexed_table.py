"""The façade: a Hudi table with its indexes.

These are RFC-51's createIndex, buildIndex, dropIndex and getRowIdSet under the names a Python user
expects; the README has the table of both.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import index
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, SupportsIndex, overload

import pyarrow as pa

from hudi_index_service import config
from hudi_index_service.advise import Advice
from hudi_index_service.advise.table import advise
from hudi_index_service.build.budget import UNLIMITED, Budget
from hudi_index_service.build.executor import Executor, LocalExecutor
from hudi_index_service.build.partition_condition import partitions_where
from hudi_index_service.build.record import BuildRecord, BuildRecords
from hudi_index_service.build.run import Build, Details, Progress, RetryFailed, run_build
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.clean import Cleaning, clean
from hudi_index_service.columns import require_list
from hudi_index_service.config import Settings
from hudi_index_service.definition_changes import altered_columns, new_columns
from hudi_index_service.definitions import (
    Column,
    DefinitionStore,
    IndexDefinition,
    SeenTimeline,
    check_index_name,
)
from hudi_index_service.drop import Dropped, drop_by_name, drop_columns
from hudi_index_service.errors import (
    ConfigInvalid,
    IndexDefinitionInvalid,
    IndexExists,
    IndexServiceError,
    PredicateUnsupported,
    TableFeatureUnsupported,
)
from hudi_index_service.index.factory import index_types
from hudi_index_service.index.requirements import (
    Requirement,
    analyzed_texts,
    requirements,
    text_rankers,
)
from hudi_index_service.optimizer import QueryPlan
from hudi_index_service.optimizer.history.history import history_of, stored_history
from hudi_index_service.optimizer.history.record import HistoryShape
from hudi_index_service.overwritten import KnownTable, overwritten_since
from hudi_index_service.predicate.expression import AnalyzedText
from hudi_index_service.predicate.for_spark import is_for_spark
from hudi_index_service.purge import purge_unasked
from hudi_index_service.read.index_folder import IndexFolderReader
from hudi_index_service.read.planner import QueryPlanner, QueryType, UseIndex, Wanted
from hudi_index_service.read.query import Binding, Query
from hudi_index_service.read.reader_pool import ReaderPool
from hudi_index_service.read.scan import Planner, Scan
from hudi_index_service.read.scoring import Scoring
from hudi_index_service.read.search_request import SearchRequest
from hudi_index_service.read.slice_reader import SliceReader
from hudi_index_service.read.tag_location import AskedKeys, Keys, KeySearch
from hudi_index_service.status import TableStatus, table_status
from hudi_index_service.table import HudiTable, open_hudi_table
from hudi_index_service.table.as_of import instant_of
from hudi_index_service.verify import DEFAULT_SAMPLE, Verification, verify

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hudi_index_service.table.spark import SparkHudiReader

log = logging.getLogger(__name__)

_ASK_SPARK = "Or pass spark=<session with Hudi> to open_table: its own Hudi reader answers then."


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
        self._definitions = DefinitionStore(table.storage, self._latest)
        self._known: Mapping[str, IndexDefinition] = {}
        self._pool = ReaderPool(table.storage, self._settings)
        self._history = history_of(self._settings)
        folder = IndexFolderReader(table.storage, self.indexes)
        self._planner = QueryPlanner(table, folder, self._pool, self._settings)

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
        """Closes the index readers kept open between queries, and writes the history of queries
        (the setting `history.enabled`)."""
        self._pool.close()
        if self._history is not None:
            self._history.flush()

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
        """The Hudi table underneath, read only: its timeline, its snapshots."""
        return self._table

    def schema(self) -> pa.Schema:
        """The table's schema, Hudi's meta columns first."""
        return self._table.schema()

    # --- definitions -------------------------------------------------------------------------

    def create_index(
        self,
        name: str,
        columns: Sequence[str | Column],
        *,
        using: str | Sequence[str] = "lucene",
        if_not_exists: bool = False,
        since: str | None = None,
    ) -> IndexDefinition:
        """Defines an index (RFC-51: createIndex). Nothing is built yet: that happens after the next
        clustering or compaction, or by `build`.

        Args:
            name: Letters, digits and _.
            columns: Column names, or `Column` with options of the index type.
            using: The index type, or several: each gets entries of its own with all the columns.
            if_not_exists: Return the present definition if the name is taken.
            since: INCREMENTAL starts with this instant (requested time); after the present ones
                when None.

        Raises:
            IndexExists, IndexTypeUnknown, ColumnNotFound, ColumnNotIndexable,
            IndexDefinitionInvalid, PermissionDenied.
            ConfigInvalid: `columns` or `using` is no list.
            TableFeatureUnsupported: the table cannot be read without Spark, so no index would
                ever serve it.
        """
        check_index_name(name)
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
        if not isinstance(using, str):
            require_list(using, "using")
        kinds = index_types([using] if isinstance(using, str) else using)
        asked = new_columns(name, columns, kinds, self.schema())
        names = tuple(kind.name for kind in kinds)
        return self._definitions.create(name, names, asked, self._seen(since))

    def _latest(self) -> str:
        instants = self._table.completed_instants()
        return instants[-1].requested if instants else ""

    def _seen(self, since: str | None = None) -> SeenTimeline:
        completed = (instant.requested for instant in self._table.completed_instants())
        instants = tuple(each for each in completed if since is None or each < since)
        return SeenTimeline(start=min(instants, default=since or ""), instants=instants)

    def alter_index(
        self,
        name: str,
        *,
        add: Sequence[str | Column] = (),
        drop: Sequence[str] = (),
        options: Mapping[str, Mapping[str, str]] | None = None,
        options_for_all: Mapping[str, str] | None = None,
        rename_to: str | None = None,
    ) -> IndexDefinition:
        """Changes an index. Entries built before serve on with the columns that still match;
        `refresh` brings them up to date.

        A renamed index keeps its entries. Whoever is killed in the middle of a rename leaves both
        names, each right, sharing the entries: the same call again, or dropping the old name,
        finishes it.

        Args:
            add: New columns; one that is there already may come with other options.
            drop: Columns to leave out.
            options: Column → its options from now on, for columns that are there.
            options_for_all: What every column of the index is to have beside its own options;
                those of `add` and `options` win.
            rename_to: Another name.

        Returns:
            The definition as it is now.

        Raises:
            IndexNotFound, ColumnNotFound, ColumnNotIndexable, IndexTypeUnknown, PermissionDenied.
            IndexDefinitionInvalid: nothing would change, no column would be left, or a column or
                option does not fit.
            IndexExists: `rename_to` is taken.
            IndexChanged: somebody else changed it at the same moment; nothing was changed here.
        """
        current = self._definitions.get(name)
        columns = altered_columns(
            current,
            self.schema(),
            add=add,
            drop=drop,
            options=options or {},
            options_for_all=options_for_all or {},
        )
        if rename_to is not None and rename_to != name:
            return self._definitions.rename(current, rename_to, columns)
        if columns == current.columns:
            raise IndexDefinitionInvalid(
                f"Nothing about index {name} would change.",
                remedy="Name columns to add or drop, other options, or another name.",
            )
        return self._definitions.change(current, columns)

    def drop_index(
        self,
        name: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        purge: bool = False,
    ) -> Dropped:
        """Drops an index, or takes columns out of every index (RFC-51: dropIndex): it serves no
        query from now on; what is built goes with later builds and cleans. Where other indexes
        share an entry, it keeps the values of the dropped columns until `refresh` or `purge`.

        Args:
            name: The index.
            columns: Instead of a name: these columns leave every index; an index left with none
                is dropped.
            purge: Remove at once everything that no live index asks for, whichever index it was
                built for: entries that others share are built anew without it. What could not be
                removed is said in the result; dropping again with `purge` finishes it.

        Raises:
            IndexNotFound: there is no such index, or none with such a column. With `purge`, one
                that has been dropped before is purged.
            ConfigInvalid: neither name nor columns are given, or both; or `columns` is no list.
            PermissionDenied.
        """
        if (name is None) == (columns is None):
            raise ConfigInvalid(
                "An index is dropped by its name, or by columns.", remedy="Give one of the two."
            )
        if columns is not None:
            require_list(columns, "columns")
        if name is not None:
            dropped = drop_by_name(self._definitions, name, again=purge)
        else:
            schema = self.schema()
            dropped = drop_columns(self._definitions, columns or (), schema, again=purge)
        if not purge:
            return dropped
        purged = purge_unasked(self._table, self._executor(), self._settings)
        self._pool.close()  # what is open keeps a deleted file's bytes on the disk
        return replace(dropped, purge=purged)

    def indexes(self) -> tuple[IndexDefinition, ...]:
        """The live index definitions, by name."""
        live = self._definitions.live()
        self._tell_if_overwritten(live)
        return live

    def _tell_if_overwritten(self, live: Sequence[IndexDefinition]) -> None:
        before, self._known = self._known, {each.name: each for each in live}
        lost = [each for name, each in before.items() if name not in self._known]
        if lost:
            last_seen = max((i for each in lost for i in each.seen.instants), default="")
            overwritten = overwritten_since(self._table, KnownTable.of(last_seen, lost))
            if overwritten is not None:
                log.warning("%s", overwritten)

    def partitions(self, where: str | None = None) -> tuple[str, ...]:
        """The partitions with base files, sorted; with `where`, those in which it holds. What
        `build` takes.

        Args:
            where: A Spark SQL predicate over the table's partition columns.

        Raises:
            PredicateInvalid: it does not parse, or asks for other columns.
            PredicateUnsupported: it is not answered here, or the partitions' paths do not tell the
                values of its columns.
            ColumnNotFound, TableFeatureUnsupported.
        """
        return partitions_where(
            self._table, where, time_zone=self._time_zone(), settings=self._settings.read
        )

    # --- building and keeping ----------------------------------------------------------------

    def build(
        self,
        *,
        strategy: Strategy | Literal["incremental", "all", "refresh"] = Strategy.INCREMENTAL,
        instant: str | None = None,
        partitions: Sequence[str] | None = None,
        budget: Budget = UNLIMITED,
        retry_failed: RetryFailed = "now",
        dry_run: bool = False,
        progress: Progress | None = None,
        details: Details | None = None,
    ) -> Build:
        """Builds the entries that are due (RFC-51: buildIndex, "optimize table").

        Runs on Spark if the table was opened with a session, else in local threads. Failures of
        single base files stand in the result; `Build.raise_for_failures` turns them into an error.

        Args:
            strategy: INCREMENTAL: base files that clustering or compaction (the setting `build.on`)
                wrote since the index was defined; ALL: every base file of the present snapshot;
                REFRESH: see `refresh`, for all indexes.
            instant: Only base files written by this instant.
            partitions: Only these partitions: paths relative to the table, of partitions or of
                folders above them, or patterns of the shell (``dt=2026-01-*``).
            budget: When to stop. What is left the next build goes on with.
            retry_failed: ``now``; ``backoff`` leaves entries alone that failed a short while ago
                (settings `build.retry_seconds`, `build.retry_max_seconds`), as wake-ups do.
            dry_run: Only say what is due, and what it would cost.
            progress: Called with (done, all) while it runs.
            details: Called with a `BuildProgress` while it runs: rows, bytes, time left.

        Raises:
            BuildInProgress, PermissionDenied, TableFeatureUnsupported.
            NativeModuleMissing: what an index type runs on, such as Java, is missing where the
                build would run; nothing was begun.
            BuildFailed: the Spark job as a whole failed.
            ConfigInvalid: there is no such strategy, or no such partition.
        """
        return run_build(
            self._table,
            self._requirements(),
            strategy=Strategy.named(strategy),
            executor=self._executor(),
            settings=self._settings,
            instant=instant,
            partitions=partitions,
            budget=budget,
            retry_failed=retry_failed,
            dry_run=dry_run,
            progress=progress,
            details=details,
        )

    def refresh(
        self,
        name: str,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
        details: Details | None = None,
    ) -> Build:
        """Brings an index up to date with its definition, by new generations of what is not: the
        entries there are that lack one of its columns, or hold what no live index asks for any
        more; and builds what INCREMENTAL would. Entries that are right are not touched.

        Base files that have no entry and were there before the index are not its business: `build`
        with the strategy ALL indexes them.

        Args:
            dry_run: Only say what is due.
            progress: Called with (done, all) while it runs.
            details: Called with a `BuildProgress` while it runs: rows, bytes, time left.

        Raises:
            IndexNotFound, and what `build` raises.
        """
        definition = self._definitions.get(name)
        return run_build(
            self._table,
            self._requirements(),
            strategy=Strategy.REFRESH,
            executor=self._executor(),
            settings=self._settings,
            indexes=(definition.name,),
            dry_run=dry_run,
            progress=progress,
            details=details,
        )

    def cancel(self) -> str | None:
        """Asks the build that runs on the table, here or elsewhere, to give up; it does with its
        next heartbeat. What is published stays, and a later build goes on with the rest.

        Returns:
            The build's id; None if no build is running.

        Raises:
            PermissionDenied: no write access below ``.hoodie/.index``.
        """
        return self._records().request_cancel()

    def _executor(self) -> Executor:
        if self._spark is None:
            return LocalExecutor(self._settings.build.parallelism)
        from hudi_index_service.build.spark import SparkExecutor

        return SparkExecutor(self._spark)

    def builds(self, limit: int | None = None) -> list[BuildRecord]:
        """The recorded builds, newest first, `limit` of them at most."""
        return self._records().all(limit)

    def _records(self) -> BuildRecords:
        stale_seconds = self._settings.build.stale_seconds
        return BuildRecords(self._table.storage, stale_seconds=stale_seconds)

    def status(self) -> TableStatus:
        """How the table's indexes stand (RFC-51: "show indexing"): for every index how much of the
        present snapshot it covers, what is due and since when; the last builds; entries that
        outlive their base file.

        Raises:
            TableFeatureUnsupported: the table cannot be read whole here.
        """
        return table_status(self._table, self._requirements(), self._records(), self._settings)

    def clean(self, *, dry_run: bool = False, grace_seconds: float | None = None) -> Cleaning:
        """Removes entries whose base file (or instant) has expired, superseded generations, what
        dead builds left, empty folders, and this user's cached copies of all these.

        Args:
            dry_run: Only say what would go, and why.
            grace_seconds: Instead of the settings' own; 0 removes at once what no base file, live
                definition or living build holds.

        Raises:
            PermissionDenied: no write access below ``.hoodie/.index``.
        """
        cleaning = clean(self._table, self._settings, dry_run=dry_run, grace_seconds=grace_seconds)
        if not dry_run:
            self._pool.close()  # what is open keeps a deleted file's bytes on the disk
        return cleaning

    def verify(self, *, repair: bool = False, sample: int = DEFAULT_SAMPLE) -> Verification:
        """Reads every entry of the present snapshot whole: compares checksums and the base files'
        footers, lets the index type check its own structure, and looks up rows of each base file.

        Args:
            repair: Build what is damaged anew, on Spark if the table was opened with a session;
                the damaged entries go.
            sample: How many rows of each base file to look up by each of their values.

        Raises:
            TableFeatureUnsupported: the table cannot be read whole here.
            NativeModuleMissing: what an index type runs on is not installed.
            ConfigInvalid: `sample` is negative.
            BuildInProgress, PermissionDenied, BuildFailed: of the repair.
        """
        if sample < 0:
            raise ConfigInvalid(f"sample={sample} is negative.", remedy="Use 0 or more.")
        return verify(
            self._table,
            self._requirements(),
            self._settings,
            sample=sample,
            executor=self._executor() if repair else None,
        )

    def _requirements(self) -> list[Requirement]:
        """What the live definitions ask for. One that cannot be met here (its index type is not
        installed, a column changed its type) serves nothing, and says so in the log."""
        return requirements(self.indexes(), self.schema())

    # --- reading -----------------------------------------------------------------------------

    def scan(
        self,
        where: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        as_of: str | None = None,
        limit: int | None = None,
        query_type: QueryType = "snapshot",
        use_index: UseIndex = "auto",
    ) -> Scan:
        """The rows for which `where` is TRUE, as Spark SQL would return them.

        Args:
            where: A Spark SQL predicate; None for every row.
            columns: Column names in the wanted order; None for all.
            as_of: The table as it was then, rows and schema; None for now. As Spark's option
                ``as.of.instant``, by the table's clock: ``yyyyMMddHHmmssSSS`` (an instant's
                requested time), ``yyyy-MM-dd HH:mm:ss.SSS``, ``yyyy-MM-dd``.
            limit: At most this many rows; reading stops there.
            query_type: ``read_optimized`` reads base files alone, as Spark's query type of that
                name does: no change that still lies in a log file is seen.
            use_index: ``auto``; ``never`` scans; ``require`` raises rather than scan a slice.

        Raises:
            ColumnNotFound, PredicateInvalid.
            PredicateUnsupported: `where` is not answered here. If the table was opened with a
                session, Spark answers what is made of columns, literals and plain functions.
            ConfigInvalid: `limit` is no number of rows, `columns` is no list, `as_of` names no
                moment, or `use_index` or `query_type` is none of its words.
            TableFeatureUnsupported, SnapshotUnavailable: the schema of `as_of` cannot be told.
        """
        if limit is not None and not _is_count(limit):
            raise ConfigInvalid(f"There is no limit={limit!r}.", remedy="Use an integer from 0 on.")
        wanted = _wanted(as_of, query_type, use_index)
        binding = self._binding(where, columns)
        spark = self._spark_reader(wanted)

        def schema(*, fresh: bool = True) -> pa.Schema:
            try:
                return self._table.schema(wanted.as_of, fresh=fresh)
            except TableFeatureUnsupported:
                if spark is None:
                    raise
                return spark.schema()

        try:
            binding.to(schema(fresh=False))
        except IndexServiceError:  # perhaps not of the present schema
            try:
                binding.to(schema())
            except PredicateUnsupported as error:
                if where is None or use_index == "require" or not is_for_spark(where):
                    raise
                if spark is None:
                    raise PredicateUnsupported(
                        error.message, remedy=f"{error.remedy} {_ASK_SPARK}"
                    ) from error
                replace(binding, where=None).to(schema())  # the columns have to be there
        planner = Planner(
            schema=schema,
            plan=lambda asked: self._planner.plan(asked, wanted),
            reader=self._slice_reader,
            spark=spark,
            on_session=lambda session: self._reader_on(session, wanted),
            history=self._history,
        )
        return Scan(binding, planner, limit=limit)

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
    ) -> pa.Table:
        """The `k` rows whose texts fit best, by BM25 (Lucene's, k1 1.2, b 0.75): the best first,
        with a column ``_score`` behind the others. Fewer if fewer match.

        Scores rest on all rows of the snapshot that is searched, whatever `where` says and whatever
        is covered: slices without an entry that can score are read whole and analysed first.

        Args:
            column: A string column of an index with the options ``analyzer`` and ``ranked``.
            text: What is searched for; the analyser makes words of it.
            where: A Spark SQL predicate that has to hold as well.
            columns: Column names in the wanted order; None for all.
            words: Rows with ``any`` of the words, or with ``all``.
            as_of, query_type: The snapshot to search in; see `scan`.

        Raises:
            PredicateUnsupported: no live index can rank the column.
            ColumnNotFound, PredicateInvalid, SnapshotUnavailable: see `scan`.
            ConfigInvalid: `k`, `words`, `as_of` or `query_type` make no sense.
            TableFeatureUnsupported: a slice cannot be read without Spark.
            SnapshotChanged: files were cleaned during the search, twice.
        """
        wanted = _wanted(as_of, query_type)
        return self._search_request(column, text, words, k, where, wanted, columns).rows()

    def scoring(
        self,
        column: str,
        text: str,
        *,
        words: Literal["any", "all"] = "any",
        as_of: str | None = None,
        query_type: QueryType = "snapshot",
    ) -> Scoring:
        """What gives single texts the scores that `search` gives rows: for who has the rows already
        and reads nothing more. It is made as `search` is, whose arguments these are.

        Raises:
            What `search` raises.
        """
        wanted = _wanted(as_of, query_type)
        return self._search_request(column, text, words, 1, None, wanted, ()).scoring()

    def _search_request(
        self,
        column: str,
        text: str,
        words: str,
        k: int,
        where: str | None,
        wanted: Wanted,
        columns: Sequence[str] | None,
    ) -> SearchRequest:
        return SearchRequest(
            column,
            text,
            words,
            k,
            where,
            wanted,
            binding=lambda asked: self._binding(asked, columns),
            rankers=lambda schema: text_rankers(requirements(self._definitions.live(), schema)),
            planner=self._planner,
            reader=self._slice_reader,
        )

    @overload
    def tag_location(self, keys: Keys, *, spark: "SparkSession | None" = None) -> pa.Table: ...

    @overload
    def tag_location(self, keys: "DataFrame") -> "DataFrame": ...

    def tag_location(
        self, keys: "Keys | DataFrame", *, spark: "SparkSession | None" = None
    ) -> "pa.Table | DataFrame":
        """Where record keys lie in the present snapshot, as Hudi's writers ask it ("tagLocation"):
        by an index on ``_hoodie_record_key`` or on the key column where there is one, else by the
        Bloom filters of the base files and a scan of their keys.

        A key's location is its row in a base file, also if log files update or delete that row: it
        is where Hudi writes the key's next version. A key that log files alone hold has a location
        without row id.

        Args:
            keys: Record keys as Hudi prints them (``a:1,b:2`` of several columns): a list, or an
                Arrow table with a column ``record_key``. Where a key may occur in several
                partitions: (partition, key) pairs, or a column ``partition`` in the table; each key
                is then looked for in its partition alone, else in all of them. Or a Spark
                DataFrame with such columns, whose keys never pass through the driver.
            spark: The keys, however many, are looked for by one job of this session, whose
                executors need this package; by threads of this process when None.

        Returns:
            ``record_key, partition, file_id, instant, row_id`` for each key, in the order asked,
            several times for one that is in several places. ``file_id`` is NULL if the key is
            absent; ``instant`` is the requested time of the one that wrote the base file. Of a
            DataFrame a DataFrame, in no particular order, of the snapshot that is the latest now.
            A table that only Spark can read is asked through the session, without row ids.

        Raises:
            ConfigInvalid: these are no keys.
            TableFeatureUnsupported: the table cannot be read without Spark; or it has virtual keys
                that are not to be told from its columns.
            SnapshotChanged: files were cleaned during the search, twice.
        """
        search = KeySearch(self._table, self._planner, self._pool, self._settings)
        if not isinstance(keys, pa.Table | Sequence):
            if not hasattr(keys, "sparkSession"):
                raise ConfigInvalid(
                    f"Keys are a list, an Arrow table or a DataFrame, not {type(keys).__name__}.",
                    remedy='Write tag_location(["key"]).',
                )
            from hudi_index_service.read.location.spark import frame_answer

            return frame_answer(search, keys, lambda on: self._reader_on(on, Wanted()))
        asked = AskedKeys.of(keys)
        session = spark or self._spark
        if session is None:
            return search.answer(asked)
        from hudi_index_service.read.location.spark import answer

        reader = self._reader_on(session, Wanted())
        return answer(search, asked, reader, by_tasks=spark is not None)

    # --- the history of queries ----------------------------------------------------------------

    def history(self) -> list[HistoryShape]:
        """What this user's queries on the table had, by their shape: columns and operators, without
        literals. What was asked last comes first. See the section `history` of the settings."""
        return stored_history(self._settings).shapes(self.uri)

    def advise(self) -> Advice:
        """What would make queries cheaper, by the history of this user's queries, the definitions,
        the entries and the footers of base files: columns that deserve an index, indexes that no
        query used, settings of the writer; each with its evidence. Nothing is changed.

        Raises:
            TableFeatureUnsupported: the table cannot be read whole here.
            PermissionDenied, StorageFailed: a base file's footer cannot be read.
        """
        history, records = stored_history(self._settings), self.builds()
        return advise(self._table, self.indexes(), records, history, self._settings)

    def forget_history(self) -> int:
        """Forgets it.

        Returns:
            How many shapes are forgotten.

        Raises:
            HistoryUnavailable: the file in the state folder could not be changed.
        """
        return stored_history(self._settings).forget(self.uri)

    def _slice_reader(self, query: Query, plan: QueryPlan) -> SliceReader:
        return SliceReader(
            self._table,
            query,
            plan.snapshot.instant,
            self._pool,
            self._settings,
            index_required=plan.use_index == "require",
        )

    def _binding(self, where: str | None, columns: Sequence[str] | None) -> Binding:
        return Binding(where, columns, self._time_zone(), self._texts, self._settings.read)

    def _texts(self, schema: pa.Schema) -> Mapping[str, Sequence[AnalyzedText]]:
        """How full-text search finds the words of each column: as the live definitions say."""
        return analyzed_texts(requirements(self._definitions.live(), schema))

    def _spark_reader(self, wanted: Wanted) -> "SparkHudiReader | None":
        return None if self._spark is None else self._reader_on(self._spark, wanted)

    def _reader_on(self, spark: "SparkSession", wanted: Wanted) -> "SparkHudiReader":
        from hudi_index_service.table.spark import SparkHudiReader

        return SparkHudiReader(spark, self.uri, as_of=wanted.as_of, query_type=wanted.query_type)

    def _time_zone(self) -> str:
        if self._spark is None:
            return self._settings.read.time_zone
        return str(self._spark.conf.get("spark.sql.session.timeZone"))


def _is_count(number: SupportsIndex) -> bool:
    """Whether it is an integer, of Python's or numpy's, and not negative."""
    try:
        return index(number) >= 0
    except TypeError:
        return False


def _wanted(as_of: str | None, query_type: QueryType, use_index: UseIndex = "auto") -> Wanted:
    """Raises ConfigInvalid: one of them is none of its words, or names no moment."""
    if use_index not in ("auto", "never", "require"):
        raise ConfigInvalid(
            f"There is no use_index={use_index!r}.", remedy="Use auto, never or require."
        )
    if query_type not in ("snapshot", "read_optimized"):
        raise ConfigInvalid(
            f"There is no query_type={query_type!r}.", remedy="Use snapshot or read_optimized."
        )
    return Wanted(use_index, None if as_of is None else instant_of(as_of), query_type)
