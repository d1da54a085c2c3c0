"""Predicates as Spark's columns, so that Spark parses no text of theirs, in which it would replace
``${…}``."""

from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from hudi_index_service.predicate.expression import (
    And,
    ArrayContains,
    Compare,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    Predicate,
    RLike,
)

_DAYS = pa.int32()
_BY_OPERATOR = {
    Operator.EQ: Column.__eq__,
    Operator.NE: Column.__ne__,
    Operator.LT: Column.__lt__,
    Operator.LE: Column.__le__,
    Operator.GT: Column.__gt__,
    Operator.GE: Column.__ge__,
    Operator.EQ_NULL_SAFE: Column.eqNullSafe,
}


def condition(predicate: Predicate) -> Column | None:
    """The predicate, bound to the table's columns, as a condition of Spark's; None if a value of it
    is left to Spark's parser, as times are, whose zone is the session's."""
    try:
        return _condition(predicate)
    except _LeftToParser:
        return None


class _LeftToParser(Exception):
    pass


def _condition(predicate: Predicate) -> Column:
    match predicate:
        case Constant(value):
            return F.lit(value).cast("boolean")
        case Compare(column, operator, value):
            result: Column = _BY_OPERATOR[operator](F.col(str(column)), _literal(value))
            return result
        case In(column, values, has_null):
            listed = [_literal(each) for each in values]
            return F.col(str(column)).isin(*listed, *([F.lit(None)] if has_null else []))
        case IsNull(column):
            return F.col(str(column)).isNull()
        case Like(column, pattern, escape):
            return F.like(F.col(str(column)), F.lit(pattern), F.lit(escape))
        case RLike(column, pattern):
            return F.col(str(column)).rlike(pattern)
        case ArrayContains(column, value):
            return F.array_contains(F.col(str(column)), _literal(value))
        case Not(operand):
            return ~_condition(operand)
        case And(operands):
            return reduce(and_, map(_condition, operands))
        case Or(operands):
            return reduce(or_, map(_condition, operands))
    raise _LeftToParser  # full-text search


def _literal(value: pa.Scalar) -> Column:
    kind, types = value.type, pa.types
    if types.is_date32(kind):
        return F.date_from_unix_date(F.lit(value.cast(_DAYS).as_py()))
    if types.is_string(kind) or types.is_boolean(kind) or types.is_float64(kind):
        return F.lit(value.as_py())
    name: Any = None
    if types.is_signed_integer(kind):
        name = {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}[kind.bit_width]
    elif types.is_float32(kind):
        name = "float"
    elif types.is_decimal(kind):
        name = f"decimal({kind.precision}, {kind.scale})"
    elif types.is_binary(kind):
        name = "binary"
    if name is None:
        raise _LeftToParser
    return F.lit(value.as_py()).cast(name)
