"""Errors of Spark, of Hudi and of the service: in one line, with a remedy in terms of SQL."""

import json
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.errors.exceptions.captured import CapturedException

from hudi_index_service.errors import (
    IndexServiceError,
    Remedy,
    StatementFailed,
    StatementInvalid,
    error_class,
)
from hudi_index_service.predicate.values import string_sql

log = logging.getLogger(__name__)

_BY_PATH = "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY"
_PATH = re.compile(r"\bhudi\s*\.\s*`((?:[^`]|``)+)`", re.IGNORECASE)


def first_line(error: PySparkException | Py4JJavaError) -> str:
    """The error's first line, without stack trace or plan."""
    text = str(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)
    lines = [line.strip() for line in text.splitlines()]
    return next((line for line in lines if line), type(error).__name__)


@contextmanager
def hudis_errors_named(beginning: str, *, remedy: str) -> Iterator[None]:
    """Raises StatementFailed for a Hudi exception that has no class in PySpark.

    Args:
        beginning: Beginning of the message.
    """
    try:
        yield
    except Py4JJavaError as error:
        reason = first_line(error).removesuffix(".")
        raise StatementFailed(f"{beginning}: {reason}.", remedy=remedy) from error


@contextmanager
def errors_of_queries_named(query: str) -> Iterator[None]:
    """Raises the service's errors that the JVM shows as Spark's as what they are; and
    StatementInvalid for a query that names a Hudi table by its path, which Spark supports only for
    its own file formats."""
    try:
        yield
    except AnalysisException as error:
        parts = error.getMessageParameters() or {}
        kind = error_class(error.getErrorClass() or "")
        if kind is not None and "remedy" in parts:
            raise kind(parts["message"], remedy=parts["remedy"]) from error
        match = _PATH.search(query)
        if match is None or error.getErrorClass() != _BY_PATH:
            raise
        path = match[1].replace("``", "`")
        quoted = string_sql(path)
        raise StatementInvalid(
            f"Spark does not support a Hudi table by its path in a query: {match[0]}.",
            remedy="Give it a name and query that: CREATE TEMPORARY VIEW t USING hudi "
            f"OPTIONS (path {quoted}) for this session, CREATE TABLE t USING hudi LOCATION "
            f"{quoted} for its catalog.",
        ) from error


@contextmanager
def remedies_in_sql() -> Iterator[None]:
    """Raises the service's errors with the SQL form of their remedies."""
    try:
        yield
    except IndexServiceError as error:
        error.remedies = Remedy(error.remedies.sql)
        raise


def answer_or_error(answer: Callable[[], Any]) -> Any:
    """What a call returns; an error of the service in JSON (`error_fields`), with the remedy in
    terms of SQL; Spark's own error as it is in the JVM."""
    try:
        with remedies_in_sql():
            return answer()
    except CapturedException as error:
        return error._origin
    except Py4JJavaError as error:
        return error.java_exception
    except IndexServiceError as error:
        log.info("The statement fails: %s", error.code)
        return json.dumps(error_fields(error))


def error_fields(error: IndexServiceError) -> dict[str, Any]:
    """An error of the service, as `Answer.java` reads it."""
    return {
        "error": error.code,
        "message": error.message,
        "remedy": error.remedy,
        "syntax": isinstance(error, StatementInvalid),
    }
