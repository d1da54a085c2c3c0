"""Index statements: of `IndexSession`, and in ``spark.sql``, whose parser asks about them."""

import json
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from py4j.java_collections import JavaMap
from pyspark.sql import Column, DataFrame, SparkSession

from hudi_index_service.errors import StatementFailed, StatementInvalid
from hudi_index_service.sql.errors import (
    answer_or_error,
    errors_of_queries_named,
    hudis_errors_named,
)
from hudi_index_service.sql.explain import ExplainIndex, explained_result, explains_queries_only
from hudi_index_service.sql.grammar import TableReference
from hudi_index_service.sql.rule.by_index import in_python, session_readers
from hudi_index_service.sql.rule.reader import RelationReader
from hudi_index_service.sql.rule.uses import USES, RelationUse, Use
from hudi_index_service.sql.statement import LeftToHudi, Open, Result, table_location
from hudi_index_service.sql.statements import Statement, description, parse_statement
from hudi_index_service.table import IndexedTable

_SEE_HUDI = "This is Hudi's message about one of its own indexes; see Hudi's documentation."


class SqlStatements:
    """Runs index statements, and answers `PythonSource.java` about them.

    Args:
        reader: Opens tables, and reads the relations of explained queries.
        extensions: The JVM's `IndexExtensions`.
    """

    def __init__(self, reader: RelationReader, extensions: Any) -> None:
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
        try:
            return self._run(spark, statement, text, args)
        finally:
            self._extensions.forget(spark._jsparkSession)

    def _run(self, spark: SparkSession, statement: Statement, text: str, args: Any) -> DataFrame:
        if isinstance(statement, ExplainIndex):
            return self._explained(spark, statement, args)
        if args:
            raise StatementInvalid(
                "An index statement takes no parameters.", remedy="Write the values in the text."
            )
        try:
            done = statement.run(self._opening(spark))
            return (
                done.frame(spark) if isinstance(done, Result) else self._by_hudi(spark, text, done)
            )
        finally:
            self._reader.forget(close=statement.removes_files)

    def _by_hudi(self, spark: SparkSession, text: str, left: LeftToHudi) -> DataFrame:
        """The result of Hudi's or Spark's own statement. The parser of the extension would hand it
        back to the service."""
        try:
            with hudis_errors_named("Hudi refuses the statement", remedy=_SEE_HUDI):
                return DataFrame(self._extensions.passOn(spark._jsparkSession, text), spark)
        except StatementFailed as error:
            if left.otherwise is None:
                raise
            raise left.otherwise from error

    def relations(self, frame: DataFrame) -> tuple[RelationUse, ...]:
        """How a query's Hudi relations are read, in the order of Spark's optimized plan; complete
        once the query has run. Spark plans it now if it has not yet."""
        uses = _written(self._extensions.uses(frame._jdf))
        return tuple(each.relation(self._reader.read) for each in uses)

    def close(self) -> None:
        """Closes the index files that stay open between queries."""
        self._reader.close()

    def described(self, session: Any, text: str) -> Any:
        """What a text is that begins like an index statement.

        Args:
            session: The JVM's session.
        """
        return answer_or_error(
            lambda: json.dumps(description(text, self._opening(in_python(session))))
        )

    def result(self, session: Any, text: str, arguments: Any) -> Any:
        """Runs a statement: a DataFrame of the JVM, or the error. The JVM forgets its decisions.

        Args:
            session: The JVM's session.
            arguments: The JVM's columns, by name or in their order.
        """

        def frame() -> Any:
            statement = parse_statement(text)
            assert statement is not None, "the parser has asked about it"
            return self._run(in_python(session), statement, text, _columns(arguments))._jdf

        return answer_or_error(frame)

    def _explained(self, spark: SparkSession, statement: ExplainIndex, args: Any) -> DataFrame:
        if self._extensions.changesSomething(spark._jsparkSession, statement.query):
            raise explains_queries_only()
        started = perf_counter()
        with errors_of_queries_named(statement.query):
            frame = spark.sql(statement.query, args)
            uses = self._extensions.uses(frame._jdf)
            readers = session_readers(spark)
            if statement.analyze:
                frame._jdf.queryExecution().toRdd().count()
            found = [self._reader.explained(each, readers) for each in _written(uses)]
            seconds = perf_counter() - started if statement.analyze else None
            return explained_result(found, seconds).frame(spark)

    def _opening(self, spark: SparkSession) -> Open:
        def open_named(table: TableReference) -> IndexedTable:
            return self._reader.opened(table_location(spark, table), spark)

        return open_named


def _written(uses: Any) -> list[Use]:
    """The JVM's uses of a query, each as it is by now."""
    return USES.validate_json(uses.json())


def _columns(arguments: Any) -> Mapping[str, Column] | list[Column] | None:
    if isinstance(arguments, JavaMap):
        return {name: Column(value) for name, value in arguments.items()}
    return [Column(value) for value in arguments] or None
