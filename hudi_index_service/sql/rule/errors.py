"""Errors that the JVM shows to whoever runs a query or a statement."""

import json
import logging

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException

from hudi_index_service.errors import IndexServiceError, StatementInvalid

log = logging.getLogger(__name__)

ERRORS = (IndexServiceError, CapturedException, Py4JJavaError)
"""The errors of the service, of Spark and of Hudi."""


def error_answer(error: IndexServiceError | CapturedException | Py4JJavaError) -> object:
    """An error of the service in JSON; Spark's own error as it is in the JVM."""
    if isinstance(error, CapturedException):
        return error._origin
    if isinstance(error, Py4JJavaError):
        return error.java_exception
    log.info("The statement fails: %s", error.code)
    in_syntax = isinstance(error, StatementInvalid)
    return json.dumps(
        {
            "error": error.code,
            "message": error.message,
            "remedy": error.remedy,
            "syntax": in_syntax,
        }
    )
