"""Index statements of sessions without Python."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from pydantic import Field, TypeAdapter

from hudi_index_service.catalog.entry import CatalogTable
from hudi_index_service.catalog.spark import no_table
from hudi_index_service.errors import RequestRefused
from hudi_index_service.optimizer.cost.in_spark import SessionReaders
from hudi_index_service.sql.errors import answer_or_error, error_fields
from hudi_index_service.sql.explain import ExplainIndex, explained_result, explains_queries_only
from hudi_index_service.sql.grammar import TablePath, TableReference
from hudi_index_service.sql.rule.reader import RelationReader
from hudi_index_service.sql.rule.request import Message, read_message
from hudi_index_service.sql.rule.uses import Use
from hudi_index_service.sql.statement import Open, Result, TableStatement, in_session_catalog
from hudi_index_service.sql.statements import description, parse_statement
from hudi_index_service.table import IndexedTable


class _Entry(Message, extra="forbid"):
    """What the session's catalog knows of a table.

    Attributes:
        found: Whether it knows the table at all.
    """

    found: bool
    is_view: bool = False
    location: str | None = None
    provider: str | None = None
    input_format: str | None = None


class _StatementText(Message, extra="forbid"):
    """A statement of a session.

    Attributes:
        catalog: The session's current catalog.
        entry: The table that the statement names; None if that is not known yet.
    """

    text: str
    catalog: str
    entry: _Entry | None = None


class _Explained(Message, extra="forbid"):
    """A query that EXPLAIN INDEX is about.

    Attributes:
        changes: Whether it is none, but would change something.
        uses: Its relations, as `Use.java` writes them.
        seconds: Its duration; None if it was not run.
    """

    changes: bool
    uses: list[Use] = Field(default_factory=list)
    seconds: float | None = None


_TEXT = TypeAdapter(_StatementText)
_EXPLAINED = TypeAdapter(_Explained)


class _TableWanted(Exception):
    """The session has to look up a table in its catalog, and ask again."""

    def __init__(self, database: str | None, name: str) -> None:
        self.wanted = {"database": database, "name": name}


class SessionStatements:
    """Answers what `DaemonStatements.java` asks about index statements. Tables are named as the
    catalog of the session has them: the answer to a name is at first ``{"table": {"database": …,
    "name": …}}``, and the session asks again with what its catalog knows.

    Args:
        reader: Opens tables, explains queries, and forgets what it keeps when an index changes.
        may_change: Whether statements may change indexes.
    """

    def __init__(self, reader: RelationReader, *, may_change: bool) -> None:
        self._reader = reader
        self._may_change = may_change

    def described(self, body: str) -> str:
        """What a text is that begins like an index statement, as `Source.java` describes it."""

        def described() -> dict[str, str]:
            asked = read_message(_TEXT, body)
            return description(asked.text, self._opening(asked))

        return _answered(described)

    def done(self, body: str) -> str:
        """Runs a statement: ``columns`` and ``rows``, or ``query`` and ``analyze`` for the session
        to plan and to ask `explained`, or ``left``: it is Hudi's, and ``otherwise`` may be the
        error if it fails there."""
        return _answered(lambda: self._done(read_message(_TEXT, body)))

    def explained(self, body: str, readers: SessionReaders) -> str:
        """The result of EXPLAIN INDEX: ``columns`` and ``rows``."""
        return _answered(lambda: self._explained(read_message(_EXPLAINED, body), readers))

    def _done(self, asked: _StatementText) -> dict[str, Any]:
        statement = parse_statement(asked.text)
        if statement is None:
            return {"left": True}
        if isinstance(statement, ExplainIndex):
            return {"query": statement.query, "analyze": statement.analyze}
        self._refuse_changes(statement)
        try:
            done = statement.run(self._opening(asked))
        finally:
            self._reader.forget(close=statement.removes_files)
        if isinstance(done, Result):
            return _written(done)
        otherwise = None if done.otherwise is None else error_fields(done.otherwise)
        return {"left": True, "otherwise": otherwise}

    def _refuse_changes(self, statement: TableStatement) -> None:
        if not self._may_change and statement.changes_something:
            raise RequestRefused(
                "The daemon that answers this session changes no index.",
                remedy="Start hudi-index serve-spark with --allow-changes, or use hudi-index on "
                "the command line.",
            )

    def _explained(self, explained: _Explained, readers: SessionReaders) -> dict[str, Any]:
        if explained.changes:
            raise explains_queries_only()
        uses = [self._reader.explained(each, readers) for each in explained.uses]
        return _written(explained_result(uses, explained.seconds))

    def _opening(self, asked: _StatementText) -> Open:
        def open_named(table: TableReference) -> IndexedTable:
            return self._reader.opened(_base_path(table, asked))

        return open_named


def _base_path(table: TableReference, asked: _StatementText) -> str:
    if isinstance(table, TablePath):
        return table.path
    database, name = in_session_catalog(table, asked.catalog)
    if asked.entry is None:
        raise _TableWanted(database, name)
    if not asked.entry.found:
        raise no_table(str(table))
    known = asked.entry.model_dump(exclude={"found"})
    return CatalogTable(str(table), **known).base_path()


def _answered(answer: Callable[[], dict[str, Any]]) -> str:
    def text() -> str:
        try:
            return json.dumps(answer(), default=_time)
        except _TableWanted as unknown:
            return json.dumps({"table": unknown.wanted})

    return str(answer_or_error(text))


def _written(result: Result) -> dict[str, Any]:
    return {"columns": result.columns, "rows": result.rows}


def _time(value: datetime) -> str:
    """A time as `DaemonStatements.java` reads it: ``2026-11-26T14:03:26.000000+00:00``."""
    return value.astimezone(UTC).isoformat(timespec="microseconds")
