"""Polars' expressions as predicates: what a condition that Polars pushes implies.

The expression is read from Polars' own JSON, the only form in which it shows its nodes. Polars
promises nothing about that form: what is not just as it is known here is left to Polars.

Polars' order is Spark's: NaN equals NaN and is above all numbers, -0.0 equals 0.0, texts compare by
bytes. It has put casts where types differ; what is cast is left to Polars.
"""

import json
from decimal import Context, Decimal
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from hudi_index_service.arrow import binary_scalar, integer_scalar, scalar, text_scalar
from hudi_index_service.engines.implied import (
    FLIPPED,
    UNKNOWN,
    Implied,
    all_of,
    among,
    any_of,
    column_at,
    compared,
    constant,
    exactly,
    is_nan,
    is_null,
    is_true,
    negated,
)
from hudi_index_service.predicate.expression import BoundColumn, Like, Operator
from hudi_index_service.predicate.like import escaped_text, parse_like

_COMPARISONS = {
    "Eq": Operator.EQ,
    "NotEq": Operator.NE,
    "Lt": Operator.LT,
    "LtEq": Operator.LE,
    "Gt": Operator.GT,
    "GtEq": Operator.GE,
    "EqValidity": Operator.EQ_NULL_SAFE,
}
_CLOSED = {
    "Both": (Operator.GE, Operator.LE),
    "Left": (Operator.GE, Operator.LT),
    "Right": (Operator.GT, Operator.LE),
    "None": (Operator.GT, Operator.LT),
}
_EXACT = Context(prec=76)

_Node = Any
"""A node of Polars' JSON."""


def implied(expression: pl.Expr, schema: pa.Schema) -> Implied:
    """What a condition on rows of a schema implies."""
    try:
        return _Reader(schema).condition(json.loads(expression.meta.serialize(format="json")))
    except (pl.exceptions.ComputeError, RecursionError):
        return UNKNOWN  # a Python function that cannot be pickled; thousands of operators


class _Reader:
    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def condition(self, node: _Node) -> Implied:
        match node:
            case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
                return all_of((self.condition(left), self.condition(right)))
            case {"BinaryExpr": {"left": left, "op": "Or" | "LogicalOr", "right": right}}:
                return any_of((self.condition(left), self.condition(right)))
            case {"BinaryExpr": {"left": left, "op": "NotEqValidity", "right": right}}:
                return negated(self._compared(left, Operator.EQ_NULL_SAFE, right))
            case {"BinaryExpr": {"left": left, "op": str(op), "right": right}}:
                operator = _COMPARISONS.get(op)
                return UNKNOWN if operator is None else self._compared(left, operator, right)
            case {"Function": {"input": [operand], "function": {"Boolean": "Not"}}}:
                return negated(self.condition(operand))
            case {"Function": {"input": [operand, *rest], "function": {"Boolean": kind}}}:
                return _truth(self._column(operand), kind, rest)
            case {"Function": {"input": [operand, text], "function": {"StringExpr": kind}}}:
                return _pattern(self._column(operand), kind, text)
            case {"Literal": {"Scalar": {"Boolean": bool(value)}}}:
                return constant(value)
            case {"Literal": {"Scalar": {"Null": "Boolean"}}}:
                return constant(None)
        return is_true(self._column(node))

    def _compared(self, left: _Node, operator: Operator, right: _Node) -> Implied:
        column = self._column(left)
        if column is None:
            column, right, operator = self._column(right), left, FLIPPED.get(operator, operator)
        return UNKNOWN if column is None else compared(column, operator, _scalar(right, column))

    def _column(self, node: _Node) -> BoundColumn | None:
        path: list[str] = []
        while True:
            match node:
                case {"Column": str(name)}:
                    return column_at(self._schema, [name, *path])
                case {
                    "Function": {
                        "input": [inner],
                        "function": {"StructExpr": {"FieldByName": str(name)}},
                    }
                }:
                    path.insert(0, name)
                    node = inner
                case _:
                    return None


def _truth(column: BoundColumn | None, kind: _Node, operands: list[_Node]) -> Implied:
    """A function of a column that returns a truth value."""
    if column is None:
        return UNKNOWN
    match kind, operands:
        case "IsNull", []:
            return is_null(column)
        case "IsNotNull", []:
            return negated(is_null(column))
        case "IsNan", []:
            return is_nan(column)
        case "IsNotNan", []:
            return negated(is_nan(column))
        case {"IsBetween": {"closed": str(closed)}}, [low, high] if closed in _CLOSED:
            ends = zip(_CLOSED[closed], (low, high), strict=True)
            return all_of(compared(column, each, _scalar(end, column)) for each, end in ends)
        case {"IsIn": {"nulls_equal": False}}, [{"Alias": [values, _]} | values]:
            return _listed(column, values)
    return UNKNOWN


def _listed(column: BoundColumn, literal: _Node) -> Implied:
    match literal:
        case {"Literal": {"Scalar": {"List": list(stream)}}}:
            values = _values(bytes(stream))
            found = among(column, values.drop_null())
            # If a NULL is listed, the other values are not FALSE: TRUE is known, no more.
            return Implied(found.predicate, exact=found.exact and not values.null_count)
    return UNKNOWN


def _pattern(column: BoundColumn | None, kind: _Node, text: _Node) -> Implied:
    """The start, the end or a part of a text."""
    if column is None or not pa.types.is_string(column.type):
        return UNKNOWN
    match kind, text:
        case "StartsWith", {"Literal": {"Scalar": {"String": str(value)}}}:
            pattern = f"{escaped_text(value)}%"
        case "EndsWith", {"Literal": {"Scalar": {"String": str(value)}}}:
            pattern = f"%{escaped_text(value)}"
        case {"Contains": {"literal": True}}, {"Literal": {"Scalar": {"String": str(value)}}}:
            pattern = f"%{escaped_text(value)}%"
        case _:
            return UNKNOWN
    return exactly(Like(column, pattern, "!", parse_like(pattern, "!")))


def _values(stream: bytes) -> pa.Array:
    """The values of a literal list, a stream of Arrow with one column."""
    values = pa.ipc.open_stream(stream).read_all().column(0).combine_chunks()
    views = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return values.cast(views.get(values.type, values.type))


def _scalar(node: _Node, column: BoundColumn) -> pa.Scalar | None:
    """A literal of the column's own type; None for any other, and for NaN and infinity, which JSON
    does not have."""
    kind = column.type
    match node:
        case {"Literal": {"Scalar": {"Boolean": bool(value)}}} if pa.types.is_boolean(kind):
            return scalar(value, kind)
        case {"Literal": {"Scalar": {"String": str(value)}}} if pa.types.is_string(kind):
            return text_scalar(value)
        case {"Literal": {"Scalar": {"Binary": list(value)}}} if pa.types.is_binary(kind):
            return binary_scalar(bytes(value))
        case {"Literal": {"Scalar": {"Date": int(value)}}} if pa.types.is_date32(kind):
            return scalar(value, kind)
        case {"Literal": {"Scalar": {"Float32": int(value) | float(value)}}}:
            return scalar(np.float32(value), kind) if pa.types.is_float32(kind) else None
        case {"Literal": {"Scalar": {"Float64": int(value) | float(value)}}}:
            return scalar(float(value), kind) if pa.types.is_float64(kind) else None
        case {"Literal": {"Scalar": {"Datetime": [int(value), "Microseconds", zone]}}}:
            is_ours = pa.types.is_timestamp(kind) and kind.unit == "us"
            same = is_ours and (zone is None) == (kind.tz is None)
            return scalar(value, kind) if same else None
        case {"Literal": {"Scalar": {"Decimal": [int(value), _, int(scale)]}}}:
            return _decimal(value, scale, kind) if pa.types.is_decimal128(kind) else None
        case {"Literal": {"Scalar": dict(value)}} if pa.types.is_signed_integer(kind):
            number = value.get(f"Int{kind.bit_width}")
            return integer_scalar(number, kind) if isinstance(number, int) else None
    return None


def _decimal(unscaled: int, scale: int, kind: pa.DataType) -> pa.Scalar | None:
    """A decimal in a column's type, if it is one of its values."""
    steps = Decimal(unscaled).scaleb(kind.scale - scale, _EXACT)
    if steps != steps.to_integral_value() or abs(steps) >= 10**kind.precision:
        return None
    return scalar(steps.scaleb(-kind.scale, _EXACT), kind)
