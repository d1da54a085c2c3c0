"""Index statements in ``spark.sql``, which the extension's parser asks about: `IndexSession` runs
them."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.java_collections import JavaMap
from pyspark import SparkContext
from pyspark.sql import Column, SparkSession

from hudi_index_service.config import Settings
from hudi_index_service.sql.dialect import parse_statement
from hudi_index_service.sql.remedies import remedies_in_sql
from hudi_index_service.sql.rule.errors import ERRORS, error_answer
from hudi_index_service.sql.session import IndexSession
from hudi_index_service.sql.statements import DropColumns, DropIndex, ExplainIndex


class SqlStatements:
    """Answers `PythonSource.java` about statements.

    Args:
        storage_options, settings: As for `enable`.
        on_files_removed: Called when files of an index may have been removed.
    """

    def __init__(
        self,
        storage_options: Mapping[str, str] | None,
        settings: Settings | None,
        on_files_removed: Callable[[], None],
    ) -> None:
        self._storage_options = storage_options
        self._settings = settings
        self._on_files_removed = on_files_removed

    def described(self, session: Any, text: str) -> Any:
        """What a text is that begins like an index statement.

        Args:
            session: The JVM's session.
        """
        try:
            with remedies_in_sql():
                return json.dumps(self._description(session, text))
        except ERRORS as error:
            return error_answer(error)

    def _description(self, session: Any, text: str) -> dict[str, str]:
        statement = parse_statement(text)
        if statement is None:
            return {}
        with self._index_session(session) as index_session:
            columns = index_session.result_columns(statement)
        if columns is None:
            return {}
        if isinstance(statement, ExplainIndex):
            return {"columns": columns, "query": statement.query}
        return {"columns": columns}

    def result(self, session: Any, text: str, arguments: Any) -> Any:
        """Runs a statement: a DataFrame of the JVM, or the error.

        Args:
            arguments: The JVM's columns, by name or in their order.
        """
        try:
            with self._index_session(session) as index_session:
                frame = index_session.sql(text, _in_python(arguments))
                if isinstance(parse_statement(text), DropIndex | DropColumns):
                    self._on_files_removed()
                return frame._jdf
        except ERRORS as error:
            return error_answer(error)

    @contextmanager
    def _index_session(self, session: Any) -> Iterator[IndexSession]:
        spark = SparkSession(SparkContext.getOrCreate(), session)
        index_session = IndexSession(
            spark, storage_options=self._storage_options, settings=self._settings
        )
        try:
            yield index_session
        finally:
            index_session.close()


def _in_python(arguments: Any) -> Mapping[str, Column] | list[Column] | None:
    if isinstance(arguments, JavaMap):
        return {name: Column(value) for name, value in arguments.items()}
    return [Column(value) for value in arguments] or None
