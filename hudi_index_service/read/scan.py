"""The query object that users hold: planned lazily, run on demand, with EXPLAIN."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import chain
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from hudi_index_service.errors import (
    ConfigInvalid,
    IndexServiceError,
    PredicateUnsupported,
    RowIdsUnavailable,
    SnapshotChanged,
    TableFeatureUnsupported,
)
from hudi_index_service.predicate.expression import Match
from hudi_index_service.predicate.text.for_spark import has_substitution, is_for_spark
from hudi_index_service.process import awaited_methods
from hudi_index_service.read.execution import Execution, RowIds, first_rows
from hudi_index_service.read.freshness import ANY, Freshness, saying
from hudi_index_service.read.query import Binding
from hudi_index_service.read.slices.index_estimates import with_index_estimates
from hudi_index_service.read.statistics import ReadStatistics
from hudi_index_service.read.turn import Turn
from hudi_index_service.read.whole_snapshot import on_a_whole_snapshot
from hudi_index_service.row_formats import html_table
from hudi_index_service.spark_session import require_session

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from pyspark.sql import Column, DataFrame, SparkSession

    from hudi_index_service.hudi.spark import SparkHudiReader
    from hudi_index_service.read.explanation import Explanation

log = logging.getLogger(__name__)

T = TypeVar("T")

_UNSUPPORTED = (TableFeatureUnsupported, PredicateUnsupported)
"""Errors after which Spark's own reader may run the query."""


@dataclass(frozen=True, slots=True)
class Planner:
    """The functions that plan a scan; made by the façade.

    Attributes:
        schema: Returns the schema of the rows, as far as it is known without a snapshot.
        plan: Binds the query to the present snapshot's schema and plans it there.
        spark: Reads tables that cannot be read without Spark; None without a session.
        on_session: Makes such a reader for another session.
        turn: Had while a query is planned and, if it is short, runs.
        freshness: What is asked of coverage.
    """

    schema: Callable[[], pa.Schema]
    plan: Callable[[Binding], Execution]
    spark: "SparkHudiReader | None"
    on_session: "Callable[[SparkSession], SparkHudiReader]"
    turn: Turn
    freshness: Freshness = ANY


@awaited_methods
class Scan:
    """The rows of a table for which a predicate is TRUE.

    Nothing is read until a method is called. Each call runs the query again on the latest snapshot.
    Results equal those of Spark SQL, in no particular order.
    """

    def __init__(self, binding: Binding, planner: Planner, *, limit: int | None) -> None:
        self._binding = binding
        self._planner = planner
        self._where = binding.where if isinstance(binding.where, str) else None
        self._limit = limit
        self._statistics: ReadStatistics | None = None

    def __repr__(self) -> str:
        columns = self._binding.columns
        args = {
            "columns": None if columns is None else list(columns),
            "limit": self._limit,
        }
        suffix = "".join(f", {name}={value!r}" for name, value in args.items() if value is not None)
        return f"<Scan where {self._where or 'every row'}{suffix}>"

    def _repr_html_(self) -> str:
        """The query, and what its last run read, for a notebook; runs nothing."""
        rows = [
            ("where", self._where or "(every row)"),
            ("columns", self._binding.columns or "(all)"),
            ("limit", "(none)" if self._limit is None else self._limit),
        ]
        if self._statistics is not None:
            rows.append(("rows of the last run", self._statistics.rows_returned))
        return html_table(("Scan", ""), rows)

    @property
    def columns(self) -> list[str]:
        """Names of the output columns, in order."""
        return list(self._output().names)

    @property
    def statistics(self) -> ReadStatistics | None:
        """What the last run read; None before the first run, and after a run by Spark."""
        return self._statistics

    @property
    def left_out(self) -> int | None:
        """Of a `fast` scan, how many file slices that may have rows the last run left out; None
        before the first run, and of any other scan."""
        read = self._statistics
        return read.left_out if read is not None and self._planner.freshness.fast else None

    def to_arrow(self) -> pa.Table:
        """All matching rows (at most `limit`).

        Raises:
            TableFeatureUnsupported: the table needs Spark, and no session was given.
            IndexRequired: ``use_index="require"``, and a slice would be scanned; or the scan asks
                what indexes cover, and none serves it.
            NotCovered: the table is not covered up to the instant that was asked for.
            SnapshotChanged: files were cleaned during the read, twice.
        """
        return self._run(
            lambda run: run.table(self._limit),
            lambda spark, where: spark.read(self.columns, where, limit=self._limit),
        )

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The same rows in batches, one in memory at a time. Raises what `to_arrow` raises."""
        if self._limit == 0 and self._planner.freshness != ANY:
            run = self.planned()  # an answer without rows has to be one all the same
            run.statistics.start(run.plan.slices)
            self._statistics = run.statistics
        yield from first_rows(self._batches(), self._limit)

    def stream(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The rows of `to_batches` with their schema. The first batch is read at once, and raises
        what `to_arrow` raises."""
        batches = self.to_batches()
        first = next(batches, None)
        if first is None:
            return saying(self._output(), self.left_out), batches
        return first.schema, chain([first], batches)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows of `stream`, in the form in which libraries exchange Arrow data: DuckDB, Polars,
        pandas and pyarrow take a scan as it is. The library reports errors of later batches in its
        own way."""
        reader = pa.RecordBatchReader.from_batches(*self.stream())
        return reader.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> "pd.DataFrame":
        """The rows of `to_arrow` as a pandas DataFrame, converted by pyarrow: NULLs make integers
        floating-point numbers, for example. Needs the extra ``pandas``.

        Raises:
            ConfigInvalid: pandas is not installed.
        """
        require_package("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> "pl.DataFrame":
        """The rows of `to_arrow` as a Polars DataFrame, without a copy where Polars can. Needs the
        extra ``polars``.

        Raises:
            ConfigInvalid: Polars is not installed.
        """
        require_package("polars")
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def to_spark(self, spark: "SparkSession") -> "DataFrame":
        """The same rows as a DataFrame whose tasks read them; no row passes through the driver. The
        snapshot is the latest one at the time of this call. Literals without a time zone are in
        the session's time zone.

        A small job gives Spark's planner an estimate of the result's size. Where only Spark's own
        Hudi reader can read the table, that reader makes the DataFrame.

        Executors need this package, as for building.

        Raises:
            TableFeatureUnsupported, SnapshotChanged: raised by the DataFrame's tasks if the
                cause appears only there.
            IndexRequired: see `to_arrow`.
            ConfigInvalid: the scan is `fast`, which a DataFrame cannot say.
            ConfigInvalid, SparkUnsupported: see `require_session`.
        """
        if self._planner.freshness.fast:
            raise ConfigInvalid(
                "A DataFrame of Spark cannot say what fast has left out.",
                remedy="Leave fast out, or use to_arrow().",
            )
        require_session(spark)
        from hudi_index_service.read.spark.frames import rows_by_tasks

        zone = str(spark.conf.get("spark.sql.session.timeZone"))
        binding = replace(self._binding, time_zone=zone)

        def planned_frame() -> "DataFrame":
            return rows_by_tasks(spark, self._planner.plan(binding), self._limit)

        try:
            try:
                return planned_frame()
            except SnapshotChanged as error:
                log.info("Planning again: %s", error)
                return planned_frame()
        except _UNSUPPORTED as error:
            if self._planner.freshness != ANY:
                raise
            where = self._left_to_spark(error)
            reader = self._planner.on_session(spark)
            with reader.failures_named():
                return reader.frame(self.columns, where, limit=self._limit)

    def count(self) -> int:
        """The number of matching rows, regardless of `limit`. Raises what `to_arrow` raises."""
        return self._run(
            lambda run: run.count(),
            lambda spark, where: spark.count(where),
            counting=True,
        )

    def exists(self) -> bool:
        """Whether any row matches. Raises what `to_arrow` raises."""
        return self._run(
            lambda run: run.exists(),
            lambda spark, where: spark.count(where, limit=1) > 0,
            counting=True,
        )

    def row_ids(self) -> RowIds:
        """Base file path → positions of its matching rows (RFC-51's getRowIdSet), and the number of
        matching rows in log files, which have no position.

        Raises:
            RowIdsUnavailable: a slice with log files has to be merged whole; or only Spark can read
                the table.
        """
        try:
            return self._run(lambda run: run.row_ids(), None)
        except TableFeatureUnsupported as error:
            raise RowIdsUnavailable(
                f"Only Spark can read the table, and it returns no row ids. {error.message}",
                remedy="Read the rows with to_arrow(), and pass a Spark session to open_table.",
            ) from error

    def explain(self, *, analyze: bool = False) -> "Explanation":
        """How the query is read, and why. With `analyze` the query is run, and the explanation
        includes what it actually read. Print it, or call `to_dict()`. Raises what `to_arrow`
        raises."""
        from hudi_index_service.read.explanation import Explanation

        def explained(run: Execution) -> Explanation:
            seconds = None
            if analyze:  # before entries are opened for estimates
                started = perf_counter()
                run.table()
                seconds = perf_counter() - started
            plan = with_index_estimates(run.plan, run.reader.pool)
            read = run.statistics if analyze else None
            return Explanation.of(plan, self._where, read, seconds)

        try:
            return self._run(explained, None) if analyze else explained(self.planned())
        except _UNSUPPORTED as error:
            if self._planner.spark is None:
                raise
            self._left_to_spark(error)
            return Explanation.by_spark(self._where, error.message)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Starts again once if files were cleaned before the first batch was returned. Later, a
        restart would return rows twice, or rows of two snapshots."""
        first = True
        for attempt in (1, 2):
            try:
                run = self.planned()
                self._statistics = run.statistics
                for batch in run.batches(self._limit):
                    first = False
                    yield batch
                return
            except FileNotFoundError as error:
                if attempt == 2 or not first:
                    raise SnapshotChanged(f"A file was deleted during a read: {error}.") from error
            except _UNSUPPORTED as error:
                if self._planner.spark is None or not first:
                    raise
                where = self._left_to_spark(error)
                self._statistics = None
                yield from self._planner.spark.batches(self.columns, where, limit=self._limit)
                return

    def _run(
        self,
        work: Callable[[Execution], T],
        by_spark: "Callable[[SparkHudiReader, str | Column | None], T] | None",
        *,
        counting: bool = False,
    ) -> T:
        def read() -> T:
            with self._planner.turn:
                run = self.planned(counting=counting)
                result = work(run)
            self._statistics = run.statistics
            return result

        try:
            return on_a_whole_snapshot(read)
        except _UNSUPPORTED as error:
            if self._planner.spark is None or by_spark is None:
                raise
            where = self._left_to_spark(error)
            self._statistics = None
            return by_spark(self._planner.spark, where)

    def planned(self, *, counting: bool = False) -> Execution:
        """The query planned on the present snapshot, for callers that run it themselves. Raises
        what planning raises, like `to_arrow` without a session.

        Args:
            counting: Whether only rows are counted: checking one needs the predicate's columns.
        """
        return self._planner.plan(self._binding.for_counting() if counting else self._binding)

    def _left_to_spark(
        self, error: TableFeatureUnsupported | PredicateUnsupported
    ) -> "str | Column | None":
        """The condition for Spark's own reader, without text where it can be. All that Spark gets
        passes here, whatever the reason why Spark reads.

        Raises:
            PredicateUnsupported: Spark must not or cannot evaluate it, such as full-text search,
                which Spark does not have.
        """
        if isinstance(error, PredicateUnsupported):
            text = self._text_for_spark(error)
            if not is_for_spark(text or ""):
                raise error
            # The message has literals, and search terms must not appear in the log.
            log.info("Spark's own reader serves this query: %s.", error.code)
            return text
        log.info("Spark's own reader serves this query: %s", error.message)
        try:
            predicate = self._binding.to(self._planner.schema()).predicate
        except PredicateUnsupported as unsupported:
            return self._left_to_spark(unsupported)
        if predicate is None:
            return self._text_for_spark(error)
        if any(isinstance(each, Match) for each in predicate.leaves()):
            raise PredicateUnsupported(
                f"Only Spark can read the table, and it has no full-text search. {error.message}",
                remedy="Search by LIKE or RLIKE instead.",
            ) from error
        from hudi_index_service.read.spark.conditions import condition

        found = condition(predicate)
        return self._text_for_spark(error) if found is None else found

    def _text_for_spark(self, error: IndexServiceError) -> str | None:
        if has_substitution(self._where or ""):
            raise PredicateUnsupported(
                f"Only Spark can read this, and it would replace ${{…}} in the condition by a "
                f"setting. {error.message}",
                remedy="Match the characters by LIKE: _ stands for any character, such as in "
                "'$_name}'.",
            ) from error
        return self._where

    def _output(self) -> pa.Schema:
        every_row = replace(self._binding, where=None)
        return every_row.to(self._planner.schema()).output


def require_package(package: str) -> None:
    """Raises ConfigInvalid if an optional package is not installed."""
    if find_spec(package) is None:
        raise ConfigInvalid(
            f"The package {package} is not installed.",
            remedy=f"Install it: pip install 'hudi-index-service[{package}]'.",
        )
