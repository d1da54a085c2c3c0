"""Errors that the JVM shows to whoever runs a query or a statement."""

import json
import logging
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException

from hudi_index_service.errors import IndexServiceError, StatementInvalid
from hudi_index_service.sql.remedies import remedies_in_sql

log = logging.getLogger(__name__)

_ERRORS = (IndexServiceError, CapturedException, Py4JJavaError)
"""The errors of the service, of Spark and of Hudi."""


def answer_or_error(answer: Callable[[], Any]) -> Any:
    """What a call returns; an error of the service in JSON (`error_fields`), with the remedy in
    terms of SQL; Spark's own error as it is in the JVM."""
    try:
        with remedies_in_sql():
            return answer()
    except _ERRORS as error:
        if isinstance(error, CapturedException):
            return error._origin
        if isinstance(error, Py4JJavaError):
            return error.java_exception
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
