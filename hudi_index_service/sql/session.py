"""A Spark session that understands index statements as well."""

import logging
import threading
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexServiceError, StatementInvalid
from hudi_index_service.indexed_table import IndexedTable, open_table
from hudi_index_service.sql.call import (
    Argument,
    call_statement,
    is_call,
    serviced_table,
    serviced_table_of,
)
from hudi_index_service.sql.catalog import table_location
from hudi_index_service.sql.dialect import parse_statement
from hudi_index_service.sql.explain import explained_frame, refuse_other_than_query
from hudi_index_service.sql.first_words import first_words
from hudi_index_service.sql.remedies import remedies_in_sql
from hudi_index_service.sql.runner import StatementRunner
from hudi_index_service.sql.select import Explain, RelationUse, SelectRewriter
from hudi_index_service.sql.spark_errors import hudis_errors_named, paths_in_queries_named
from hudi_index_service.sql.statements import ExplainIndex, TableReference
from hudi_index_service.upkeep import TableUpkeep

log = logging.getLogger(__name__)

_HUDIS_INDEX = (
    "Without USING, or with a type of Hudi's, the index is one of Hudi's own: see Hudi's "
    "documentation. For one of the service write CREATE INDEX name ON t USING lucene (column, …)."
)


class _Told(threading.local):
    """What was told of the last query; of each thread's own."""

    relations: tuple[RelationUse, ...] = ()


class IndexSession:
    """Wraps a Spark session: index statements are answered here, every other one by Spark.

    Args:
        spark: A session with Hudi's bundle.
        storage_options: As for `open_table`, for tables in remote stores.
        settings: Instead of the process's own.
    """

    def __init__(
        self,
        spark: SparkSession,
        *,
        storage_options: Mapping[str, str] | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.spark = spark
        self._storage_options = storage_options
        self._settings = settings
        self._select = SelectRewriter(spark, storage_options, settings)
        self._statements = StatementRunner(spark, self._open, self._select.close)
        self._told = _Told()

    @property
    def relations(self) -> tuple[RelationUse, ...]:
        """How the Hudi tables are read in the last query that this thread has passed to `sql`: each
        occurrence of a table, and why by the index or by Spark. None where no table of the query
        has an index, and after a statement that is no query."""
        return self._told.relations

    def close(self) -> None:
        """Closes the index files that are kept open between queries."""
        self._select.close()

    def sql(self, query: str, args: Any = None, **kwargs: Any) -> DataFrame:
        """Runs one statement, at once.

        The index statements are CREATE INDEX … USING <types of the service>, ALTER INDEX, DROP
        INDEX, SHOW INDEXES, REFRESH INDEX, OPTIMIZE TABLE, SHOW INDEXING, CANCEL INDEXING and
        EXPLAIN [ANALYZE] INDEX: their forms, and the columns they return, stand in docs/sql.md and
        `hudi_index_service.sql.statements`. Everything else goes to ``spark.sql`` untouched,
        statements on Hudi's own indexes among it: CREATE INDEX without USING or with a type of
        Hudi's, DROP and REFRESH INDEX of a name that is no index of the service. After a CALL of a
        table service what is due is built, as by `call`.

        In a query, each Hudi table of which an index finds the few rows that its conditions on the
        table ask for is read through it (`relations` tells which); the answer is Spark's own. The
        rows are those of the snapshot that Spark has looked up for the query; few of them are read
        at once, more by Spark tasks when they are asked for. Executors need this package then.
        Queries may call `match` and its like, and `score` (docs/sql.md, "Full text"), where the
        session has no other function of that name.

        Args:
            query: One statement; a semicolon may close it.
            args: Parameters, as ``spark.sql`` takes them. Index statements take none, but for the
                query of EXPLAIN INDEX.
            kwargs: The same.

        Raises:
            StatementInvalid: an index statement with a syntax error, or with parameters; a query
                that names a Hudi table by its path, which Spark does not take.
            StatementFailed: Hudi refuses a statement on its own indexes.
            TableNotFound, NotAHudiTable, and what the façade's methods raise.
            PredicateUnsupported, PredicateInvalid, ScoreUnavailable: a full-text function asks for
                what cannot be told.
            pyspark.errors.PySparkException, py4j.protocol.Py4JJavaError: from Spark.
        """
        with remedies_in_sql():
            return self._run(query, args, kwargs)

    def _run(self, query: str, args: Any, kwargs: Mapping[str, Any]) -> DataFrame:
        if is_call(query):
            called = self.spark.sql(query, args, **kwargs)
            return self._after_service(called, serviced_table(query))
        statement = parse_statement(query)
        self._told.relations = ()
        if statement is None and first_words(query) == ("CREATE", "INDEX"):
            with hudis_errors_named("Hudi creates no such index", remedy=_HUDIS_INDEX):
                return self.spark.sql(query, args, **kwargs)
        if statement is None:
            frame, self._told.relations = self._read(query, args, kwargs)
            return frame
        if isinstance(statement, ExplainIndex):
            return self._explain(statement, args, kwargs)
        if args or kwargs:
            raise StatementInvalid(
                "An index statement takes no parameters.", remedy="Write the values into it."
            )
        return self._statements.run(statement, query)

    def call(self, procedure: str, /, **arguments: Argument) -> DataFrame:
        """Calls a procedure of Hudi's; after run_clustering and run_compaction, for which Hudi
        sends no callback, builds what is due for the table.

        >>> session.call("run_clustering", table="messages", op="scheduleAndExecute")

        The build never hides the procedure's result: its failure is logged, and recorded with the
        table's builds; the next wake-up tries again.

        Args:
            procedure: Its name, or a whole CALL statement. `sql` does the same with a CALL
                statement.
            arguments: The procedure's own; they become literals of SQL.

        Returns:
            What the procedure returned; it has run.

        Raises:
            StatementInvalid: a name or an argument that cannot be written in SQL.
            pyspark.errors.PySparkException, py4j.protocol.Py4JJavaError: from the procedure; then
                nothing is built.
        """
        if is_call(procedure) and not arguments:
            return self.sql(procedure)
        called = self.spark.sql(call_statement(procedure, arguments))
        return self._after_service(called, serviced_table_of(procedure, arguments))

    def _after_service(self, called: DataFrame, table: TableReference | None) -> DataFrame:
        """The result, after the build. Spark runs commands at once; what is called has run, and
        the result holds its rows."""
        if table is not None:
            self._build_after_service(table)
        return called

    def _build_after_service(self, table: TableReference) -> None:
        try:
            with TableUpkeep(
                table_location(self.spark, table),
                spark=self.spark,
                storage_options=self._storage_options,
                settings=self._settings,
            ) as upkeep:
                build = upkeep.run()
        except IndexServiceError as error:
            log.error("The build after the table service on %s failed: %s", table, error)
        except Exception:
            log.exception("The build after the table service on %s failed.", table)
        else:
            log.info("%s: %d entries built in %.1f s.", table, len(build.built), build.seconds)

    def _read(
        self, query: str, args: Any, kwargs: Mapping[str, Any], explain: Explain | None = None
    ) -> tuple[DataFrame, tuple[RelationUse, ...]]:
        with paths_in_queries_named(query):
            frame = self._select.full_text.sql(query, args, **kwargs)
        return self._select.rewritten(frame, explain)

    def _explain(self, statement: ExplainIndex, args: Any, kwargs: Mapping[str, Any]) -> DataFrame:
        refuse_other_than_query(self.spark, statement, kwargs)
        explain: Explain = "analyze" if statement.analyze else "plan"
        started = perf_counter()
        frame, self._told.relations = self._read(statement.query, args, kwargs, explain)
        if not statement.analyze:
            return explained_frame(self.spark, self._told.relations)
        frame.write.format("noop").mode("overwrite").save()
        return explained_frame(self.spark, self._told.relations, perf_counter() - started)

    def _open(self, table: TableReference) -> IndexedTable:
        return open_table(
            table_location(self.spark, table),
            storage_options=self._storage_options,
            spark=self.spark,
            settings=self._settings,
        )
