"""Conditions that are not answered here: are they SQL, and which may be passed to Spark?

Spark receives text. A where text must do no more than select rows, so only columns, literals,
operators and plain functions of a row are passed: no subquery, and no function that runs code,
reads files or returns information about the session.
"""

import logging

from hudi_index_service.errors import PredicateInvalid
from hudi_index_service.predicate.text.lex import tokenize

log = logging.getLogger(__name__)

_LONGEST_CLASSIFIED = 100_000  # characters; sqlglot takes several microseconds for each


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words allowed before a parenthesis: operators, types with parameters, functions of a row.
_BEFORE_PARENTHESIS = _words(
    """
    AND ANY ALL BETWEEN CASE ELSE ESCAPE IN LIKE ILIKE NOT OR RLIKE REGEXP SOME THEN WHEN
    CHAR DEC DECIMAL NUMERIC VARCHAR
    ABS ADD_MONTHS ARRAY ARRAY_CONTAINS ARRAY_POSITION ASCII BIGINT BOOLEAN BTRIM CARDINALITY CAST
    CEIL CEILING CHAR_LENGTH COALESCE CONCAT CONCAT_WS CONTAINS DATE DATEDIFF DATE_ADD DATE_FORMAT
    DATE_SUB DATE_TRUNC DAY DAYOFMONTH DAYOFWEEK DAYOFYEAR DOUBLE ELEMENT_AT ENDSWITH FLOAT FLOOR
    GREATEST HEX HOUR IF IFNULL INITCAP INSTR INT ISNAN ISNOTNULL ISNULL LAST_DAY LCASE LEAST LEFT
    LENGTH LOCATE LOWER LPAD LTRIM MAP_KEYS MAP_VALUES MD5 MINUTE MOD MONTH MONTHS_BETWEEN NULLIF
    NVL NVL2 OCTET_LENGTH PMOD POW POWER QUARTER REGEXP_EXTRACT REGEXP_LIKE REGEXP_REPLACE REPLACE
    REVERSE RIGHT ROUND RPAD RTRIM SECOND SHA1 SHA2 SIGN SIZE SMALLINT SPLIT SQRT STARTSWITH STRING
    SUBSTR SUBSTRING TIMESTAMP TINYINT TO_DATE TO_TIMESTAMP TRANSLATE TRIM TRUNC TRY_CAST UCASE
    UNHEX UPPER WEEKDAY WEEKOFYEAR YEAR
    """
)
_QUERIES = _words("FROM OVER SELECT TABLE VALUES WITH")


def has_substitution(where: str) -> bool:
    """Whether Spark would replace a part of a text, such as ``${env:HOME}``, by a setting or a
    variable of the environment. It does so even within literals, whatever they mean here."""
    return "${" in where


def is_for_spark(where: str) -> bool:
    """Whether a condition that is not answered here may be passed to Spark."""
    if has_substitution(where):
        return False
    try:
        tokens = tokenize(where)
    except PredicateInvalid:
        return False
    before, last = "", ""
    for token in tokens:
        if token.keyword in _QUERIES or token.text in (";", "{", "}"):
            return False
        if token.text == "(" and last:
            is_name = last.isidentifier() or last.startswith("`") or last.isalnum()
            if is_name and (last.upper() not in _BEFORE_PARENTHESIS or before == "."):
                return False
        before, last = last, token.text
    return True


def may_be_spark_sql(where: str) -> bool:
    """Whether sqlglot parses `where` as a condition, or it is too long for sqlglot: then it is not
    supported, otherwise it is no SQL."""
    if len(where) > _LONGEST_CLASSIFIED:
        return True
    # Imported here, since few texts come to this, and the import takes long.
    import sqlglot

    logger = logging.getLogger("sqlglot")
    was_disabled, logger.disabled = logger.disabled, True
    try:
        sqlglot.parse_one(where, dialect="spark", into=sqlglot.exp.Condition)
    # sqlglot's errors: its own, recursion, unreadable numbers, and its bugs.
    except (
        *(sqlglot.errors.SqlglotError, RecursionError, ArithmeticError, ValueError),
        *(AttributeError, LookupError, TypeError),
    ) as error:
        log.debug("sqlglot cannot parse the predicate: %s", type(error).__name__)
        return False
    finally:
        logger.disabled = was_disabled
    return True
