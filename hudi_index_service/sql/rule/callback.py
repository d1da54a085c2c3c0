"""What the JVM calls: questions and answers as `PythonSource.java` describes them."""

import json
import logging
import re
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from hudi_index_service.errors import IndexServiceError
from hudi_index_service.sql.relations.weighing import KeepSparkScan
from hudi_index_service.sql.remedies import remedies_in_sql
from hudi_index_service.sql.rule.errors import ERRORS, error_answer
from hudi_index_service.sql.rule.undecided import Undecided

if TYPE_CHECKING:
    from hudi_index_service.sql.rule.reader import RelationReader
    from hudi_index_service.sql.rule.statements import SqlStatements

log = logging.getLogger(__name__)

_FAILURES = (IndexServiceError, OSError, pa.ArrowException, PySparkException, Py4JJavaError)
"""What a table or its index may cause; Spark's own reader answers, or reports the error."""

_CANCELLED = re.compile(r"Job \d+ cancelled.*")


class Callback:
    """Answers the JVM. Called by threads of py4j, several at a time."""

    def __init__(self, reader: "RelationReader", statements: "SqlStatements") -> None:
        self._reader = reader
        self._statements = statements

    def apply(self, question: str, request: Any) -> Any:
        """The answer to a question. Never raises: py4j would end the thread on SystemExit, which a
        signal handler of the program may raise, and the JVM would wait for an answer."""
        try:
            match question:
                case "statement":
                    return self._statements.described(*request)
                case "run":
                    return self._statements.result(*request)
                case "rows":
                    return _or_spark(lambda each: self._rows(*each), request)
                case "bind":
                    return _or_error(lambda: json.dumps(self._reader.calls.bound(request)))
                case "function":
                    return _or_error(lambda: self._reader.calls.function(json.loads(request)))
            return _or_spark(self._decision, request)
        except BaseException as error:
            log.exception("The JVM gets no answer.")
            return json.dumps({"failed": f"{type(error).__name__} in Python"})

    def _decision(self, request: str) -> str:
        decided = self._reader.decide(request)
        if isinstance(decided, KeepSparkScan):
            return json.dumps({"reader": "spark", **asdict(decided)})
        if isinstance(decided, Undecided):
            return json.dumps({"reader": "undecided", **asdict(decided)})
        answer = {
            "reader": decided.reader,
            "reason": decided.reason,
            "rows": decided.expected,
            "total": decided.total,
            "indexes": decided.indexes,
            "where": decided.where,
            "instant": decided.run.plan.snapshot.instant,
        }
        return json.dumps(answer)

    def _rows(self, session: Any, request: str, use: int) -> Any:
        rows = self._reader.rows(session, request, use)
        if isinstance(rows, KeepSparkScan):
            return json.dumps({"reason": rows.reason})
        return arrow_stream(rows) if isinstance(rows, pa.Table) else rows._jdf

    class Java:
        """An interface of Java's own: others would have to be on the class loader of the thread."""

        implements: ClassVar = ["java.util.function.BiFunction"]


def _or_spark(answer: Callable[[Any], Any], request: Any) -> Any:
    """The answer about a relation; Spark's own reader, if the table or its index cause an error."""
    try:
        return answer(request)
    except _FAILURES as error:
        if cancelled := _cancelled_job(error):
            return json.dumps({"cancelled": cancelled})
        log.info("Spark reads: %s", _without_literals(error))
        return json.dumps({"reader": "spark", "reason": _in_one_line(error)})


def _or_error(answer: Callable[[], Any]) -> Any:
    """The answer about a full-text call; an error ends the query, which has no answer without."""
    try:
        with remedies_in_sql():
            return answer()
    except ERRORS as error:
        return error_answer(error)


def arrow_stream(rows: pa.Table) -> bytes:
    """Rows in Arrow's format, in the types that Spark has for them."""
    schema = to_arrow_schema(from_arrow_schema(rows.schema, prefer_timestamp_ntz=True))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(rows.cast(schema))
    stream: bytes = sink.getvalue().to_pybytes()
    return stream


def _cancelled_job(error: BaseException | None) -> str | None:
    """What Spark says of a job that was cancelled, if that is the reason for an error."""
    while error is not None:
        if match := _CANCELLED.search(str(error)):
            return match[0]
        error = error.__cause__
    return None


def _in_one_line(error: BaseException) -> str:
    text = error.message if isinstance(error, IndexServiceError) else str(error)
    return (text.splitlines() or [type(error).__name__])[0].rstrip(".")


def _without_literals(error: BaseException) -> str:
    """The error's code or class: its message may contain search literals."""
    return error.code if isinstance(error, IndexServiceError) else type(error).__name__
