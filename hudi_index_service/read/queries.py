"""Makes the queries of one table: scans, full-text searches and searches for record keys."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import index
from typing import TYPE_CHECKING, SupportsIndex

import pyarrow as pa

from hudi_index_service.config import Settings
from hudi_index_service.errors import (
    ConfigInvalid,
    IndexServiceError,
    PredicateUnsupported,
    Remedy,
    TableFeatureUnsupported,
)
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.metadata.definitions import Definitions
from hudi_index_service.index.metadata.requirements import (
    Requirement,
    analyzed_texts,
    requirements,
    text_rankers,
)
from hudi_index_service.optimizer.decide import are_many
from hudi_index_service.optimizer.history.history import history_of
from hudi_index_service.optimizer.plan import QueryPlan
from hudi_index_service.predicate.expression import AnalyzedText
from hudi_index_service.predicate.text.for_spark import is_for_spark
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.freshness import ANY
from hudi_index_service.read.index_folder import IndexFolderReader
from hudi_index_service.read.planner import LookAhead, QueryPlanner, ScanOptions
from hudi_index_service.read.query import Binding, Query, Where
from hudi_index_service.read.scan import Planner, Scan
from hudi_index_service.read.slices.log_rows import LogRowsCache
from hudi_index_service.read.slices.reader_pool import ReaderPool
from hudi_index_service.read.slices.slice_reader import SliceReader
from hudi_index_service.read.turn import Turn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hudi_index_service.hudi.spark import SparkHudiReader
    from hudi_index_service.read.keys.tag_location import Keys
    from hudi_index_service.read.ranked_search import SearchRequest

USE_SPARK = Remedy(
    "Or pass spark=<session with Hudi> to open_table: its own Hudi reader answers then.",
    command="Or use `hudi-index sql`.",
)


class TableQueries:
    """The queries of one table, which share the readers of entries.

    Args:
        definitions: Reads the table's definitions.
        spark: The session that the table was opened with; None without one.
    """

    def __init__(
        self,
        table: HudiTable,
        definitions: Callable[[], Definitions],
        settings: Settings,
        spark: "SparkSession | None",
    ) -> None:
        self._table = table
        self._definitions = definitions
        self._settings = settings
        self._spark = spark
        self._history = history_of(settings)
        self.pool = ReaderPool(table.storage, settings)
        self._log_rows = LogRowsCache(settings.read.log_rows_mb * 2**20)
        folder = IndexFolderReader(table.storage, definitions)
        self.planner = QueryPlanner(table, folder, self.pool, settings)

    def close(self) -> None:
        """Closes the readers, and writes the query history."""
        self.pool.close()
        if self._history is not None:
            self._history.flush()

    def scan(
        self,
        where: Where | None,
        columns: Sequence[str] | None,
        options: ScanOptions,
        *,
        limit: int | None,
    ) -> Scan:
        """The rows for which a predicate is TRUE; see `IndexedTable.scan`.

        If the table was opened with a session, Spark evaluates predicates of columns, literals and
        plain functions that are not supported here.

        Args:
            where, columns: See `Binding`.
            limit: The most rows to return; reading stops there.

        Raises:
            ColumnNotFound, PredicateInvalid, PredicateUnsupported: see `Binding.to`.
            ConfigInvalid: `limit` is not a number of rows, or `columns` is not a list.
            TableFeatureUnsupported, SnapshotUnavailable: the schema at the requested time is not
                known.
        """
        if limit is not None and not _is_count(limit):
            raise ConfigInvalid(
                f"limit={limit!r} is not a number of rows.", remedy="Use an integer from 0 on."
            )
        binding = self.binding(where, columns)
        ahead = self.planner.look_ahead(where, options)
        session = self._spark if options.freshness == ANY else None  # Spark knows no coverage
        spark = None if session is None else self._reader_on(session, options)

        def schema(*, fresh: bool = True) -> pa.Schema:
            try:
                return self._table.schema(options.as_of, fresh=fresh)
            except TableFeatureUnsupported:
                if spark is None:
                    raise
                return spark.schema()

        try:
            with self.planner.turn:
                binding.to(schema(fresh=False))
        except IndexServiceError:  # the cached schema may be older
            try:
                binding.to(schema())
            except PredicateUnsupported as error:
                may_spark = options.use_index != "require" and options.freshness == ANY
                if not (may_spark and isinstance(where, str) and is_for_spark(where)):
                    raise
                if spark is None:
                    raise PredicateUnsupported(
                        error.message, remedy=error.remedies + USE_SPARK
                    ) from error
                replace(binding, where=None).to(schema())  # the columns have to be there
        planner = Planner(
            schema=schema,
            plan=lambda binding: self._planned(binding, options, ahead),
            spark=spark,
            on_session=lambda session: self._reader_on(session, options),
            freshness=options.freshness,
            turn=self.planner.turn if options.freshness == ANY else Turn(is_needed=False),
        )
        return Scan(binding, planner, limit=limit)

    def search(
        self,
        column: str,
        text: str,
        words: str,
        options: ScanOptions,
        *,
        k: int = 1,
        where: str | None = None,
        columns: Sequence[str] | None = (),
    ) -> "SearchRequest":
        """A ranked full-text search. Its scoring needs neither `k`, `where` nor `columns`."""
        from hudi_index_service.read.ranked_search import SearchRequest

        return SearchRequest(
            column,
            text,
            words,
            k,
            where,
            binding=lambda condition: self.binding(condition, columns),
            plan=lambda binding: self._planned(binding, options),
            rankers=lambda schema: text_rankers(self._requirements(schema)),
        )

    def locations(
        self, keys: "Keys | DataFrame", spark: "SparkSession | None"
    ) -> "pa.Table | DataFrame":
        """The locations (`ANSWER`) of record keys in the latest snapshot: by an index on
        ``_hoodie_record_key`` or on the key column if there is one, otherwise by the base files'
        Bloom filters and a scan of their keys.

        A key's location is its row in a base file, even if log files update or delete that row:
        Hudi writes the key's next version there. A key that only log files hold has a location
        without row id. If only Spark can read the table, a session locates the keys, without row
        ids.

        Args:
            keys: Keys that the driver holds, or a DataFrame of keys.
            spark: The session whose tasks locate keys that the driver holds; None to use threads of
                this process.

        Returns:
            A table in the order of the keys; for a DataFrame, an unordered DataFrame of the
            snapshot that is the latest now.

        Raises:
            ConfigInvalid: the keys are invalid.
            TableFeatureUnsupported: the table cannot be read without Spark, or has virtual keys
                that cannot be derived from its columns.
            SnapshotChanged: files were cleaned during the search, twice.
        """
        from hudi_index_service.read.keys.tag_location import KeySearch, RequestedKeys

        search = KeySearch(self._table, self.planner, self.pool, self._settings)
        if not isinstance(keys, pa.Table | Sequence):
            if not hasattr(keys, "sparkSession"):
                raise ConfigInvalid(
                    f"Keys are a list, an Arrow table or a DataFrame, not {type(keys).__name__}.",
                    remedy='Write tag_location(["key"]).',
                )
            from hudi_index_service.read.keys.spark import frame_answer

            return frame_answer(search, keys, lambda on: self._reader_on(on, ScanOptions()))
        requested = RequestedKeys.of(keys)
        session = spark or self._spark
        if session is None:
            return search.answer(requested)
        from hudi_index_service.read.keys.spark import answer

        reader = self._reader_on(session, ScanOptions())
        return answer(search, requested, reader, by_tasks=spark is not None)

    def _planned(
        self, binding: Binding, options: ScanOptions, ahead: LookAhead | None = None
    ) -> Execution:
        query, plan = self.planner.plan(binding, options, ahead)
        reader = self.slice_reader(query, plan)
        return Execution(plan, reader, history=self._history, turn=self.planner.turn)

    def slice_reader(self, query: Query, plan: QueryPlan) -> SliceReader:
        """The reader of a plan's slices."""
        return SliceReader(
            self._table,
            query,
            plan.snapshot.instant,
            self.pool,
            self._settings,
            are_many(len(plan.slices)),
            index_required=plan.use_index == "require",
            log_rows=self._log_rows,
            routes=plan.routes,
        )

    def texts(self, schema: pa.Schema) -> Mapping[str, Sequence[AnalyzedText]]:
        """The analyzers of each column, from the live definitions."""
        return analyzed_texts(self._requirements(schema))

    @property
    def time_zone(self) -> str:
        """The time zone of literals without one."""
        if self._spark is None:
            return self._settings.read.time_zone
        return str(self._spark.conf.get("spark.sql.session.timeZone"))

    def _requirements(self, schema: pa.Schema) -> list[Requirement]:
        return requirements(self._definitions().live, schema)

    def binding(self, where: Where | None, columns: Sequence[str] | None) -> Binding:
        """A query as written; see `Binding`."""
        return Binding(where, columns, self.time_zone, self.texts, self._settings.read)

    def _reader_on(self, spark: "SparkSession", options: ScanOptions) -> "SparkHudiReader":
        from hudi_index_service.hudi.spark import SparkHudiReader

        uri = self._table.storage.uri
        return SparkHudiReader(spark, uri, as_of=options.as_of, query_type=options.query_type)


def _is_count(number: SupportsIndex) -> bool:
    """Whether a value is a non-negative integer, of Python or numpy."""
    try:
        return index(number) >= 0
    except TypeError:
        return False
