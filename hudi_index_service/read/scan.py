"""A query in the user's hands: lazily planned, run on demand, able to explain itself."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from pyroaring import BitMap

from hudi_index_service.errors import (
    RowIdsUnavailable,
    SnapshotChanged,
    TableFeatureUnsupported,
)
from hudi_index_service.optimizer.plan import Access, QueryPlan
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.explanation import Explanation, explanation
from hudi_index_service.read.query import Query
from hudi_index_service.read.slice_reader import SliceReader
from hudi_index_service.read.statistics import ReadStatistics

if TYPE_CHECKING:
    from hudi_index_service.table.spark import SparkHudiReader

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Planner:
    """How a scan gets its plan, and what runs it; made by the façade.

    Attributes:
        plan: Plans the query on the present snapshot.
        reader: Makes the reader of a plan's slices.
        spark: Serves tables that cannot be read without Spark; None without a session.
    """

    plan: Callable[[Query], QueryPlan]
    reader: Callable[[Query, QueryPlan], SliceReader]
    spark: "SparkHudiReader | None"


class Scan:
    """The rows of a table for which a predicate is TRUE.

    Nothing is read before one of the methods is called; each call runs the query anew on the
    snapshot that is the latest then. Results are what Spark SQL returns, in no particular order.
    """

    def __init__(
        self, query: Query, planner: Planner, *, where: str | None, limit: int | None
    ) -> None:
        self._query = query
        self._planner = planner
        self._where = where
        self._limit = limit
        self._statistics: ReadStatistics | None = None

    @property
    def statistics(self) -> ReadStatistics | None:
        """What the last run read; None before the first, and where Spark ran it."""
        return self._statistics

    def to_arrow(self) -> pa.Table:
        """All matching rows (at most `limit`).

        Raises:
            TableFeatureUnsupported: the table needs Spark, and no session was given.
            IndexRequired: ``use_index="require"``, and a slice would be scanned.
            SnapshotChanged: files were cleaned during the read, twice.
        """
        if self._limit is not None:
            batches = list(self.to_batches())
            return pa.Table.from_batches(batches, self._output_schema())
        return self._run(self._query, lambda run: run.table(), self._by_spark)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The same in batches, holding one at a time. Raises what `to_arrow` raises."""
        left = self._limit
        for batch in self._batches():
            if left is not None:
                batch = batch.slice(0, left)
                left -= batch.num_rows
            if batch.num_rows:
                yield pa.RecordBatch.from_arrays(batch.columns, schema=self._output_schema())
            if left == 0:
                return

    def count(self) -> int:
        """How many rows match (`limit` does not matter). Raises what `to_arrow` raises."""
        return self._run(
            self._query.counting(),
            lambda run: run.count(),
            lambda spark: spark.count(self._where),
        )

    def exists(self) -> bool:
        """Whether any row matches. Raises what `to_arrow` raises."""
        return self._run(
            self._query.counting(),
            lambda run: run.exists(),
            lambda spark: spark.count(self._where, limit=1) > 0,
        )

    def row_ids(self) -> dict[str, BitMap]:
        """Base file path → positions of its matching rows (RFC-51's getRowIdSet).

        Raises:
            RowIdsUnavailable: some slice has log files, or only Spark can read the table.
        """
        try:
            return self._run(self._query, lambda run: run.row_ids(), None)
        except TableFeatureUnsupported as error:
            raise RowIdsUnavailable(
                f"Only Spark can read the table, and it tells no row ids. {error.message}",
                remedy="Take the rows: to_arrow() with a Spark session given to open_table.",
            ) from error

    def explain(self, *, analyze: bool = False) -> Explanation:
        """How the query is read, and why; with `analyze`, it is run, and what it really read
        stands beside. Print it, or take `to_dict()`. Raises what `to_arrow` raises."""
        try:
            if analyze:
                return self._run(self._query, self._analyzed, None)
            return explanation(self._planner.plan(self._query), self._where)
        except TableFeatureUnsupported as error:
            if self._planner.spark is None:
                raise
            return Explanation(self._where, "spark", error.message, None, None)

    def _analyzed(self, run: Execution) -> Explanation:
        started = perf_counter()
        run.table()
        return explanation(run.plan, self._where, run.statistics, perf_counter() - started)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Starts again once if files were cleaned before anything was handed out; afterwards that
        would give rows twice, or of two snapshots."""
        first = True
        for attempt in (1, 2):
            try:
                run = self._execution(self._query)
                self._statistics = run.statistics
                for batch in run.batches():
                    first = False
                    yield batch
                return
            except FileNotFoundError as error:
                if attempt == 2 or not first:
                    raise SnapshotChanged(f"A file went while it was read: {error}.") from error
            except TableFeatureUnsupported:
                if self._planner.spark is None or not first:
                    raise
                self._statistics = None
                yield from self._by_spark(self._planner.spark).to_batches()
                return

    def _run(
        self,
        query: Query,
        work: Callable[[Execution], T],
        by_spark: "Callable[[SparkHudiReader], T] | None",
    ) -> T:
        try:
            for attempt in (1, 2):
                try:
                    run = self._execution(query)
                    result = work(run)
                    self._statistics = run.statistics
                    return result
                except FileNotFoundError as error:
                    log.info("Planning again, since a file is gone: %s", error)
                    if attempt == 2:
                        raise SnapshotChanged(f"A file went while it was read: {error}.") from error
        except TableFeatureUnsupported as error:
            if self._planner.spark is None or by_spark is None:
                raise
            log.info("Spark's own reader serves this query: %s", error.message)
            self._statistics = None
            return by_spark(self._planner.spark)
        raise AssertionError("every attempt returns or raises")

    def _execution(self, query: Query) -> Execution:
        plan = self._planner.plan(query)
        # Without its literals: what people search for stays out of the log.
        columns = set() if query.predicate is None else query.predicate.columns()
        log.info(
            "Query on %s: %d slices by index, %d scanned, %d merged.",
            ", ".join(sorted(columns)) or "no column",
            *(plan.count(access) for access in (Access.INDEX, Access.SCAN, Access.MERGE)),
        )
        return Execution(plan, self._planner.reader(query, plan))

    def _by_spark(self, spark: "SparkHudiReader") -> pa.Table:
        return spark.read(self._query.output.names, self._where)

    def _output_schema(self) -> pa.Schema:
        return pa.schema([field.with_nullable(True) for field in self._query.output])
