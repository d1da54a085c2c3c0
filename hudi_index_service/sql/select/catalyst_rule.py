"""Reads the Hudi relations of a query through the index if it pays.

It rewrites the optimized plan, in which views are resolved, IN and EXISTS have become joins, and
the query's conditions on a relation are directly above it. A relation is replaced by the rows that
may match them, with the relation's own attributes; the conditions stay in place. The answer is
therefore correct if no row of the relation that matches its filter is left out.
"""

import logging
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.read.spark.frames import frame_of_plan
from hudi_index_service.sql.catalyst.described import described_as
from hudi_index_service.sql.catalyst.plan import sources
from hudi_index_service.sql.catalyst.subqueries import Subqueries
from hudi_index_service.sql.full_text import FullTextFunctions, bound_calls
from hudi_index_service.sql.relations.decision import RelationUse
from hudi_index_service.sql.select.indexed import IndexedTables
from hudi_index_service.sql.select.plan_rewriter import Explain, Rewriting
from hudi_index_service.table import IndexedTable, open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


class SelectRewriter:
    """Rewrites the queries of one session, and keeps their tables open.

    Args: as for `IndexSession`.
    """

    def __init__(
        self,
        spark: "SparkSession",
        storage_options: Mapping[str, str] | None,
        settings: Settings | None,
    ) -> None:
        self._spark = spark
        self._storage_options = storage_options
        self._settings = settings
        self._tables: dict[str, IndexedTable] = {}
        self._lock = Lock()
        self._subqueries = Subqueries(spark._jvm)
        self.full_text = FullTextFunctions(spark)
        """Creates the frames of queries with full-text functions, for `rewritten`."""

    def rewritten(
        self, frame: DataFrame, explain: Explain | None = None
    ) -> tuple[DataFrame, tuple[RelationUse, ...]]:
        """The query with the relations replaced for which the index pays, or the same DataFrame if
        there are none; and the use of each Hudi relation in it.

        Args:
            explain: Collect everything that EXPLAIN shows for each relation, including tables
                without an index: ``plan`` reads no rows and leaves the query unchanged;
                ``analyze`` measures the reads.

        Raises:
            IndexServiceError: as `bound_calls`, for a query with full-text functions.
        """
        execution = frame._jdf.queryExecution()
        reads, indexed, calls = sources(execution.analyzed()), IndexedTables(self._table), None
        if reads.calls_python:
            calls = bound_calls(self.full_text, frame, self._table)
        if calls is not None:
            execution = calls.frame._jdf.queryExecution()
        elif explain is None and not _any_indexed(reads.tables, indexed):
            return frame, ()
        rewriting = Rewriting(self._spark, self._table, self._subqueries, explain, calls, indexed)
        plan = rewriting.rewritten(execution.optimizedPlan())
        for use in rewriting.uses:
            log.info(
                "%s is read by %s: %s.", use.table, "index" if use.by_index else "Spark", use.reason
            )
        if calls is not None:
            plan = calls.evaluated(execution.optimizedPlan() if plan is None else plan)
        if plan is None or explain == "plan":
            return frame, tuple(rewriting.uses)
        plan = described_as(self._spark._jvm, execution.analyzed(), plan)
        plan.setAnalyzed()  # it is: Spark's analyzer has nothing to resolve in it
        return frame_of_plan(self._spark, plan), tuple(rewriting.uses)

    def close(self) -> None:
        """Closes the tables and their open index files."""
        with self._lock:
            tables, self._tables = self._tables, {}
        for table in tables.values():
            table.close()

    def _table(self, uri: str) -> IndexedTable:
        with self._lock:
            table = self._tables.get(uri)
            if table is None:
                table = open_table(
                    uri, storage_options=self._storage_options, settings=self._settings
                )
                self._tables[uri] = table
            return table


def _any_indexed(tables: Iterable[str], indexed_tables: IndexedTables) -> bool:
    """Whether one of the tables has an index. The analyzed plan suffices for this, so that other
    queries need not wait for Spark's optimizer. A command has already run and contains its
    result."""
    for uri in tables:
        try:
            if uri in indexed_tables:
                return True
        except (IndexServiceError, OSError) as error:
            log.info("Spark reads %s: %s", uri, error)
    return False
