"""Queries whose Hudi relations are read through the index where it pays.

The optimized plan is rewritten: views are resolved in it, IN and EXISTS have become joins, and each
relation has the query's conditions on it right above. A relation is replaced by the rows that may
fulfil them, under the relation's own attributes; the conditions stay in place. So an answer rests
on nothing but this: no row of the relation that fulfils its filter is left out.
"""

import logging
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.indexed_table import IndexedTable, open_table
from hudi_index_service.read.spark import frame_of_plan
from hudi_index_service.sql.full_text import FullTextFunctions, bound_calls
from hudi_index_service.sql.select.decision import RelationUse
from hudi_index_service.sql.select.described import described_as
from hudi_index_service.sql.select.indexed import IndexedTables
from hudi_index_service.sql.select.plan import sources
from hudi_index_service.sql.select.rewriting import Explain, Rewriting
from hudi_index_service.sql.select.subqueries import Subqueries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


class SelectRewriter:
    """Rewrites the queries of one session; keeps the tables open that it meets.

    Args: as `IndexSession` takes them.
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
        """Gives the frames of queries with full-text functions, which `rewritten` takes."""

    def rewritten(
        self, frame: DataFrame, explain: Explain | None = None
    ) -> tuple[DataFrame, tuple[RelationUse, ...]]:
        """The query with the relations replaced that profit, or the very same DataFrame if none
        does; and what became of each Hudi relation in it.

        Args:
            explain: Tell all that EXPLAIN shows of each relation, of tables without an index, too:
                ``plan`` reads no rows, and the query stays as it is; ``analyze`` counts what is
                read.

        Raises:
            What `bound_calls` raises, of a query with full-text functions; else nothing of its own.
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
        found = rewriting.rewritten(execution.optimizedPlan())
        for use in rewriting.uses:
            log.info(
                "%s is read by %s: %s.", use.table, "index" if use.by_index else "Spark", use.reason
            )
        if calls is not None:
            found = calls.evaluated(execution.optimizedPlan() if found is None else found)
        if found is None or explain == "plan":
            return frame, tuple(rewriting.uses)
        found = described_as(self._spark._jvm, execution.analyzed(), found)
        found.setAnalyzed()  # it is: Spark's analyzer has nothing to resolve in it
        return frame_of_plan(self._spark, found), tuple(rewriting.uses)

    def close(self) -> None:
        """Closes the tables, and the index files that are open of them."""
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


def _any_indexed(tables: Iterable[str], indexed: IndexedTables) -> bool:
    """Whether one of the tables has an index. What an analyzed plan reads tells it: nobody waits
    here for Spark's optimizer to see a query in vain. A command has run before it comes here, and
    holds its result."""
    for uri in tables:
        try:
            if uri in indexed:
                return True
        except (IndexServiceError, OSError) as error:
            log.info("Spark reads %s: %s", uri, error)
    return False
