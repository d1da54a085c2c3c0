"""Tells SQL that is not supported from text that is no SQL, by sqlglot."""

import logging

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

log = logging.getLogger(__name__)

# sqlglot's errors: its own, recursion, unreadable numbers, and its bugs.
_STUMBLES = (
    *(SqlglotError, RecursionError, ArithmeticError, ValueError),
    *(AttributeError, LookupError, TypeError),
)
_LONGEST_CLASSIFIED = 100_000  # characters; sqlglot takes several microseconds for each


def may_be_spark_sql(where: str) -> bool:
    """Whether sqlglot parses `where` as a condition, or it is too long for sqlglot."""
    if len(where) > _LONGEST_CLASSIFIED:
        return True
    logger = logging.getLogger("sqlglot")
    was_disabled, logger.disabled = logger.disabled, True
    try:
        sqlglot.parse_one(where, dialect="spark", into=exp.Condition)
    except _STUMBLES as error:
        log.debug("sqlglot cannot parse the predicate: %s", type(error).__name__)
        return False
    finally:
        logger.disabled = was_disabled
    return True
