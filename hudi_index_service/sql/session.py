"""A Spark session that also accepts index statements."""

import logging
import threading
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexServiceError, StatementInvalid
from hudi_index_service.hook.table_upkeep import TableUpkeep
from hudi_index_service.sql.call import (
    Argument,
    call_statement,
    is_call,
    serviced_table,
    serviced_table_of,
)
from hudi_index_service.sql.errors import (
    errors_of_queries_named,
    hudis_errors_named,
    remedies_in_sql,
)
from hudi_index_service.sql.grammar import TableReference, first_words
from hudi_index_service.sql.rule.enable import enabled
from hudi_index_service.sql.rule.uses import RelationUse
from hudi_index_service.sql.statement import table_location
from hudi_index_service.sql.statements import parse_statement
from hudi_index_service.wording import counted

log = logging.getLogger(__name__)

_HUDIS_INDEX = (
    "Without USING, or with one of Hudi's types, the index is Hudi's own; see Hudi's "
    "documentation. For the service, write CREATE INDEX name ON t USING lucene (column, …)."
)


class _LastQuery(threading.local):
    """Each thread's last query; None if there is none."""

    frame: DataFrame | None = None


class IndexSession:
    """Wraps a Spark session that may not have been started with the extension: runs index
    statements itself and passes all others to Spark. Does what `enable` does first, with these
    arguments.

    Args:
        spark: A session with Hudi's bundle.
        storage_options: As for `open_table`, for tables in remote stores.
        settings: Override the process's settings.

    Raises:
        NativeModuleMissing, SparkUnsupported: as `enable`.
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
        self._enabled = enabled(spark, storage_options, settings)
        self._last_query = _LastQuery()

    @property
    def relations(self) -> tuple[RelationUse, ...]:
        """How this thread's last query in `sql` reads its Hudi tables: each occurrence of a table,
        with its reader and the reason; complete once the query has run. Empty after a statement
        that is not a query. Spark plans the query, if it has not yet.

        Raises:
            pyspark.errors.PySparkException, py4j.protocol.Py4JJavaError: from planning.
        """
        frame = self._last_query.frame
        return () if frame is None else self._enabled.relations(frame)

    def close(self) -> None:
        """Closes the index files that stay open between queries."""
        self._enabled.close()

    def sql(self, query: str, args: Any = None, **kwargs: Any) -> DataFrame:
        """Runs one statement at once.

        The index statements are CREATE INDEX … USING <types of the service>, ALTER INDEX, DROP
        INDEX, SHOW INDEXES, REFRESH INDEX, OPTIMIZE TABLE, SHOW INDEXING, CANCEL INDEXING and
        EXPLAIN [ANALYZE] INDEX; docs/sql.md and `hudi_index_service.sql.statements` describe their
        syntax and the columns they return. Every other statement is passed to ``spark.sql``
        unchanged, including those on Hudi's own indexes: CREATE INDEX without USING or with one of
        Hudi's types, DROP and REFRESH INDEX of a name that is not an index of the service. After a
        CALL of a table service, due entries are built, as by `call`.

        A query reads a Hudi table through an index if the index finds few rows for the query's
        conditions on the table (see `relations`), as all queries of the session do; the answer
        equals Spark's own. Queries may call `match`, its variants and `score` (docs/sql.md, "Full
        text"), if the session has no other function of that name.

        Args:
            query: One statement, optionally with a semicolon at the end.
            args, kwargs: Parameters, as for ``spark.sql``. Of the index statements only the query
                of EXPLAIN INDEX accepts `args`.

        Raises:
            StatementInvalid: an index statement with a syntax error, or with parameters; a query
                that names a Hudi table by its path, which Spark does not support.
            StatementFailed: Hudi refuses a statement on its own indexes.
            IndexServiceError: the errors of the façade's methods, such as TableNotFound.
            PredicateUnsupported, PredicateInvalid, ScoreUnavailable: a full-text call that cannot
                be evaluated.
            pyspark.errors.PySparkException, py4j.protocol.Py4JJavaError: from Spark.
        """
        with remedies_in_sql():
            return self._run(query, args, kwargs)

    def _run(self, query: str, args: Any, kwargs: Mapping[str, Any]) -> DataFrame:
        if is_call(query):
            result = self.spark.sql(query, args, **kwargs)
            return self._after_service(result, serviced_table(query))
        statement = parse_statement(query)
        self._last_query.frame = None
        if statement is None and first_words(query) == ("CREATE", "INDEX"):
            with hudis_errors_named("Hudi creates no such index", remedy=_HUDIS_INDEX):
                return self.spark.sql(query, args, **kwargs)
        if statement is None:
            with errors_of_queries_named(query):
                self._last_query.frame = self.spark.sql(query, args, **kwargs)
            return self._last_query.frame
        if kwargs:
            raise StatementInvalid(
                "An index statement takes no DataFrames or values for {…}.",
                remedy="Pass parameters of EXPLAIN INDEX as args, or create a temporary view.",
            )
        return self._enabled.run(self.spark, statement, query, args)

    def call(self, procedure: str, /, **arguments: Argument) -> DataFrame:
        """Calls one of Hudi's procedures. After run_clustering and run_compaction, for which Hudi
        sends no callback, builds the due entries of the table.

        >>> session.call("run_clustering", table="messages", op="scheduleAndExecute")

        A failure of the build does not hide the procedure's result: it is logged and recorded with
        the table's builds, and the next wake-up tries again.

        Args:
            procedure: Name of the procedure, or a complete CALL statement, as for `sql`.
            arguments: The procedure's arguments, which become SQL literals.

        Returns:
            The procedure's result; it has run.

        Raises:
            StatementInvalid: a name or an argument that cannot be written in SQL.
            pyspark.errors.PySparkException, py4j.protocol.Py4JJavaError: from the procedure; then
                nothing is built.
        """
        if is_call(procedure) and not arguments:
            return self.sql(procedure)
        result = self.spark.sql(call_statement(procedure, arguments))
        return self._after_service(result, serviced_table_of(procedure, arguments))

    def _after_service(self, result: DataFrame, table: TableReference | None) -> DataFrame:
        """Builds, and returns the result. Spark runs commands at once, so that the procedure has
        already run and the result contains its rows."""
        if table is None:
            return result
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
            log.info(
                "%s: %s built in %.1f s.", table, counted(len(build.built), "entry"), build.seconds
            )
        return result
