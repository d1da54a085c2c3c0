"""A Spark session that also accepts index statements."""

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from time import perf_counter
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexServiceError, StatementInvalid
from hudi_index_service.sql.call import (
    Argument,
    call_statement,
    is_call,
    serviced_table,
    serviced_table_of,
)
from hudi_index_service.sql.catalog import table_location
from hudi_index_service.sql.dialect import parse_statement
from hudi_index_service.sql.explain import (
    EXPLAINED,
    explained_frame,
    refuse_other_than_query,
)
from hudi_index_service.sql.extension import without_rule
from hudi_index_service.sql.first_words import first_words
from hudi_index_service.sql.remedies import remedies_in_sql
from hudi_index_service.sql.runner import StatementRunner
from hudi_index_service.sql.select import Explain, RelationUse, SelectRewriter
from hudi_index_service.sql.spark_errors import (
    hudis_errors_named,
    paths_in_queries_named,
    services_errors_again,
)
from hudi_index_service.sql.statements import ExplainIndex, Statement, TableReference
from hudi_index_service.table import IndexedTable, open_table
from hudi_index_service.upkeep import TableUpkeep
from hudi_index_service.wording import counted

log = logging.getLogger(__name__)

_HUDIS_INDEX = (
    "Without USING, or with one of Hudi's types, the index is Hudi's own; see Hudi's "
    "documentation. For the service, write CREATE INDEX name ON t USING lucene (column, …)."
)


class _LastQuery(threading.local):
    """The relations of each thread's last query."""

    relations: tuple[RelationUse, ...] = ()


class IndexSession:
    """Wraps a Spark session: runs index statements itself and passes all others to Spark.

    Args:
        spark: A session with Hudi's bundle.
        storage_options: As for `open_table`, for tables in remote stores.
        settings: Override the process's settings.
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
        self._last_query = _LastQuery()

    @property
    def relations(self) -> tuple[RelationUse, ...]:
        """How this thread's last query in `sql` reads its Hudi tables: each occurrence of a table,
        with its reader and the reason. Empty if no table of the query has an index, and after a
        statement that is not a query."""
        return self._last_query.relations

    def close(self) -> None:
        """Closes the index files that stay open between queries."""
        self._select.close()

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
        conditions on the table (see `relations`); the answer equals Spark's own. The rows are those
        of the snapshot that Spark has resolved for the query. Few rows are read at once, more by
        Spark tasks when the query runs; executors then need this package. Queries may call `match`,
        its variants and `score` (docs/sql.md, "Full text"), if the session has no other function of
        that name.

        Args:
            query: One statement, optionally with a semicolon at the end.
            args, kwargs: Parameters, as for ``spark.sql``. Of the index statements only the query
                of EXPLAIN INDEX accepts `args`.

        Raises:
            StatementInvalid: an index statement with a syntax error, or with parameters; a query
                that names a Hudi table by its path, which Spark does not support.
            StatementFailed: Hudi refuses a statement on its own indexes.
            TableNotFound, NotAHudiTable, and the errors of the façade's methods.
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
        self._last_query.relations = ()
        if statement is None and first_words(query) == ("CREATE", "INDEX"):
            with hudis_errors_named("Hudi creates no such index", remedy=_HUDIS_INDEX):
                return self.spark.sql(query, args, **kwargs)
        if statement is None:
            frame, self._last_query.relations = _read(self._select, query, args, kwargs)
            return frame
        if isinstance(statement, ExplainIndex):
            return self._explain(statement, args, kwargs)
        if args or kwargs:
            raise StatementInvalid(
                "An index statement takes no parameters.", remedy="Write the values in the text."
            )
        return self._statements.run(statement, query)

    def result_columns(self, statement: Statement) -> str | None:
        """The columns of a statement's result, in Spark's DDL, without running it; None if `sql`
        leaves the statement to Spark."""
        return (
            EXPLAINED
            if isinstance(statement, ExplainIndex)
            else self._statements.columns(statement)
        )

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
        if table is not None:
            self._build_after_service(table)
        return result

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
            log.info(
                "%s: %s built in %.1f s.", table, counted(len(build.built), "entry"), build.seconds
            )

    def _explain(self, statement: ExplainIndex, args: Any, kwargs: Mapping[str, Any]) -> DataFrame:
        refuse_other_than_query(self.spark, statement, kwargs)
        explain: Explain = "analyze" if statement.analyze else "plan"
        with self._explaining() as select:
            started = perf_counter()
            frame, uses = _read(select, statement.query, args, {}, explain)
            self._last_query.relations = uses
            if not statement.analyze:
                return explained_frame(self.spark, uses)
            frame.write.format("noop").mode("overwrite").save()
            return explained_frame(self.spark, uses, perf_counter() - started)

    @contextmanager
    def _explaining(self) -> Iterator[SelectRewriter]:
        """What rewrites the explained query; the rule of `enable` would be ahead of it."""
        spark = without_rule(self.spark)
        if spark is self.spark:
            yield self._select
            return
        with closing(SelectRewriter(spark, self._storage_options, self._settings)) as select:
            yield select

    def _open(self, table: TableReference) -> IndexedTable:
        return open_table(
            table_location(self.spark, table),
            storage_options=self._storage_options,
            spark=self.spark,
            settings=self._settings,
        )


def _read(
    select: SelectRewriter,
    query: str,
    args: Any,
    kwargs: Mapping[str, Any],
    explain: Explain | None = None,
) -> tuple[DataFrame, tuple[RelationUse, ...]]:
    with paths_in_queries_named(query), services_errors_again():
        frame = select.full_text.sql(query, args, **kwargs)
    return select.rewritten(frame, explain)
