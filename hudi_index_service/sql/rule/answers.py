"""Answers to what Spark asks about the relations of its queries, however it asks."""

import json
import logging
import re
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from hudi_index_service.errors import IndexServiceError
from hudi_index_service.optimizer.cost.in_spark import SessionReaders
from hudi_index_service.sql.errors import answer_or_error
from hudi_index_service.sql.rule.uses import Observed
from hudi_index_service.wording import first_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from hudi_index_service.sql.rule.reader import RelationReader

T = TypeVar("T")

log = logging.getLogger(__name__)

_FAILURES = (IndexServiceError, OSError, pa.ArrowException, PySparkException, Py4JJavaError)
"""What a table or its index may cause; Spark's own reader answers, or reports the error."""

_OF_VALUES = (ValueError, TypeError, ArithmeticError, LookupError)
"""What values of this query or its table may cause where this program has a mistake."""

_CANCELLED = re.compile(r"Job \d+ cancelled.*")


class Answers:
    """What a session of Spark is told about its queries, in the texts that `Source.java` describes.
    Errors that a table or its index may cause are answers, too.

    Args:
        reader: Answers in Python's terms.
        readers: What can read for the session.
    """

    def __init__(self, reader: "RelationReader", readers: SessionReaders) -> None:
        self._reader = reader
        self._readers = readers

    def decision(self, request: str) -> str:
        """Who reads the rows of a request: `Decision.java` in JSON."""
        return _or_spark(lambda: json.dumps(self._reader.decide(request, self._readers).message()))

    def rows(
        self,
        request: str,
        session: Any = None,
        use: int | None = None,
        observed: Observed | None = None,
    ) -> "bytes | Iterator[bytes] | str | DataFrame":
        """The rows of a request: a stream in Arrow's format; several, for many rows; or a DataFrame
        whose tasks read them; or JSON with `reason`, why Spark has to scan, or with `cancelled`.

        Args:
            session, use, observed: As for `RelationReader.rows`.
        """
        return _or_spark(lambda: self._rows(request, session, use, observed))

    def bound(self, call: str) -> Any:
        """What a full-text call means in JSON, or an error."""
        return answer_or_error(lambda: json.dumps(self._reader.calls.bound(call)))

    def function(self, call: str) -> Any:
        """The JVM's object of a function that evaluates a bound call, or an error."""
        return answer_or_error(lambda: self._reader.calls.function(json.loads(call)))

    def _rows(
        self, request: str, session: Any, use: int | None, observed: Observed | None
    ) -> "bytes | Iterator[bytes] | str | DataFrame":
        rows = self._reader.rows(session, request, use, self._readers, observed)
        if isinstance(rows, str):
            return json.dumps({"reason": rows})
        if isinstance(rows, Iterator):
            parts = map(arrow_stream, rows)
            first, *second = islice(parts, 2)  # as far as Spark can still scan in their place
            return chain((first, *second), parts) if second else first
        return arrow_stream(rows) if isinstance(rows, pa.Table) else rows


def _or_spark(answer: Callable[[], T]) -> T | str:
    """The answer about a relation; Spark's own reader, if the table or its index cause an error."""
    try:
        return answer()
    except _FAILURES as error:
        if cancelled := _cancelled_job(error):
            return json.dumps({"cancelled": cancelled})
        name, message = type(error).__name__, str(error)
        if isinstance(error, IndexServiceError):
            name, message = error.code, error.message
        log.info("Spark reads: %s", name)  # the message may contain search literals
        return json.dumps({"reader": "spark", "reason": first_line(message) or name})
    except _OF_VALUES as error:  # other queries are still answered
        log.exception("Spark reads: %s", type(error).__name__)
        return json.dumps({"reader": "spark", "reason": f"{type(error).__name__} in Python"})


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
