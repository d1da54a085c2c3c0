"""Index statements: of `IndexSession`, and in ``spark.sql``, whose parser asks about them."""

import json
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from py4j.java_collections import JavaMap
from pyspark.sql import Column, DataFrame, SparkSession

from hudi_index_service.config import Settings
from hudi_index_service.errors import StatementInvalid
from hudi_index_service.sql.catalog import table_location
from hudi_index_service.sql.dialect import parse_statement
from hudi_index_service.sql.explain import EXPLAINED, explained_frame
from hudi_index_service.sql.jvm import in_python
from hudi_index_service.sql.remedies import remedies_in_sql
from hudi_index_service.sql.rule.errors import ERRORS, error_answer
from hudi_index_service.sql.rule.reader import RelationReader
from hudi_index_service.sql.rule.uses import PlannedQuery
from hudi_index_service.sql.runner import StatementRunner
from hudi_index_service.sql.spark_errors import paths_in_queries_named, services_errors_again
from hudi_index_service.sql.statements import ExplainIndex, Statement, TableReference
from hudi_index_service.table import IndexedTable
from hudi_index_service.upkeep import configured


class SqlStatements:
    """Runs index statements, and answers `PythonSource.java` about them.

    Args:
        storage_options, settings: As for `enable`.
        reader: Reads the relations of explained queries.
        extensions: The JVM's `IndexExtensions`.
    """

    def __init__(
        self,
        storage_options: Mapping[str, str] | None,
        settings: Settings | None,
        reader: RelationReader,
        extensions: Any,
    ) -> None:
        self._storage_options = storage_options
        self._settings = settings
        self._reader = reader
        self._extensions = extensions

    def run(
        self, spark: SparkSession, statement: Statement, text: str, args: Any = None
    ) -> DataFrame:
        """Runs a statement, and returns its result.

        Args:
            text: The original text of the statement.
            args: Parameters, as for ``spark.sql``.

        Raises:
            IndexServiceError: as `IndexSession.sql`.
            pyspark.errors.PySparkException, py4j.protocol.Py4JJavaError: from Spark.
        """
        if isinstance(statement, ExplainIndex):
            return self._explained(spark, statement, args)
        if args:
            raise StatementInvalid(
                "An index statement takes no parameters.", remedy="Write the values in the text."
            )
        try:
            return self._runner(spark).run(statement, text)
        finally:
            self._reader.forget()
            self._extensions.forget(spark._jsparkSession)

    def described(self, session: Any, text: str) -> Any:
        """What a text is that begins like an index statement.

        Args:
            session: The JVM's session.
        """
        try:
            with remedies_in_sql():
                return json.dumps(self._description(in_python(session), text))
        except ERRORS as error:
            return error_answer(error)

    def _description(self, spark: SparkSession, text: str) -> dict[str, str]:
        statement = parse_statement(text)
        if statement is None:
            return {}
        if isinstance(statement, ExplainIndex):
            return {"columns": EXPLAINED, "query": statement.query}
        columns = self._runner(spark).columns(statement)
        return {} if columns is None else {"columns": columns}

    def result(self, session: Any, text: str, arguments: Any) -> Any:
        """Runs a statement: a DataFrame of the JVM, or the error.

        Args:
            session: The JVM's session.
            arguments: The JVM's columns, by name or in their order.
        """
        try:
            with remedies_in_sql():
                statement = parse_statement(text)
                assert statement is not None, "the parser has asked about it"
                frame = self.run(in_python(session), statement, text, _columns(arguments))
                return frame._jdf
        except ERRORS as error:
            return error_answer(error)

    def _explained(self, spark: SparkSession, statement: ExplainIndex, args: Any) -> DataFrame:
        if self._extensions.changesSomething(spark._jsparkSession, statement.query):
            raise StatementInvalid(
                "EXPLAIN INDEX explains queries, and this statement would change something.",
                remedy="Explain the SELECT in it.",
            )
        started = perf_counter()
        with paths_in_queries_named(statement.query), services_errors_again():
            frame = spark.sql(statement.query, args)
            query = PlannedQuery(frame, self._extensions, self._reader)
            if statement.analyze:
                uses = query.analyzed()
                return explained_frame(spark, uses, perf_counter() - started)
        return explained_frame(spark, query.explained())

    def _runner(self, spark: SparkSession) -> StatementRunner:
        def pass_on(query: str) -> DataFrame:
            return DataFrame(self._extensions.passOn(spark._jsparkSession, query), spark)

        def open_named(table: TableReference) -> IndexedTable:
            return configured(
                table_location(spark, table),
                storage_options=self._storage_options,
                spark=spark,
                settings=self._settings,
            )

        return StatementRunner(spark, open_named, pass_on, self._reader.close)


def _columns(arguments: Any) -> Mapping[str, Column] | list[Column] | None:
    if isinstance(arguments, JavaMap):
        return {name: Column(value) for name, value in arguments.items()}
    return [Column(value) for value in arguments] or None
