"""Filters of Arrow's datasets as predicates: what a filter implies. What is not known here, or
means something else, is left to Arrow.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import integer_scalar, integers_array, scalar
from hudi_index_service.engines.arrow_expression import Node, tree_of
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
    is_nan,
    is_null,
    is_true,
    negated,
)
from hudi_index_service.predicate.cast import fits
from hudi_index_service.predicate.expression import BoundColumn, Compare, In, Operator

_COMPARISONS = {
    "equal": Operator.EQ,
    "not_equal": Operator.NE,
    "less": Operator.LT,
    "less_equal": Operator.LE,
    "greater": Operator.GT,
    "greater_equal": Operator.GE,
}


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter on a dataset.

    Attributes:
        implied: What it implies.
        columns: The top-level columns that it uses.
        has_floating: Whether it may be about floating-point numbers.
        has_true: Whether TRUE is a part of it, as DuckDB 1 writes ``x <= 'NaN'``.
    """

    implied: Implied
    columns: frozenset[str] = frozenset()
    has_floating: bool = False
    has_true: bool = False


def read_filter(expression: pc.Expression, schema: pa.Schema, *, nan_is_greatest: bool) -> Filter:
    """Reads a filter on rows of a schema.

    Args:
        nan_is_greatest: Whether comparisons mean what they mean in DuckDB (and Spark), where NaN
            equals NaN and is above all numbers, and IN is NULL for NULL. Else they mean what they
            mean in Arrow, where NaN only differs from numbers, and IN is FALSE for NULL.
    """
    try:
        tree = tree_of(expression)
    except (pa.ArrowException, ValueError):
        return Filter(UNKNOWN, frozenset(schema.names), has_floating=True)
    paths = [each.path for each in tree.leaves() if each.kind == "column"]
    bound = [column_at(schema, path) for path in paths]
    has_floating = any(each is None or pa.types.is_floating(each.type) for each in bound)
    columns = frozenset(path[0] for path in paths)
    try:
        implied = _Reader(schema, nan_is_greatest).condition(tree)
        return Filter(implied, columns, has_floating, _has_true(tree))
    except RecursionError:  # hundreds of operators in a chain
        return Filter(UNKNOWN, columns, has_floating)


def _has_true(node: Node) -> bool:
    if node.kind in ("and_kleene", "or_kleene", "invert"):
        return any(map(_has_true, node.operands))
    return node.kind == "literal" and node.value is not None and node.value.as_py() is True


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads trees. `not_null` is a column that is not NULL there."""

    schema: pa.Schema
    nan_is_greatest: bool
    not_null: BoundColumn | None = None

    def condition(self, node: Node) -> Implied:
        match node.kind, node.operands:
            case "and_kleene", operands:
                return all_of(map(self.condition, operands))
            case "or_kleene", operands:
                return any_of(map(self.condition, operands))
            case "invert", (operand,):
                return negated(self.condition(operand))
            case "is_null", (operand,) if not _options(node).get("nan_is_null", True):
                return is_null(self._column(operand))
            case "is_valid", (operand,):
                return negated(is_null(self._column(operand)))
            case "is_nan", (operand,):
                return is_nan(self._column(operand))
            case "is_in", (operand,):
                return self._listed(self._column(operand), node.value)
            case "if_else", (Node("is_valid", (operand,)), value, Node("literal") as other):
                is_null_else = other.value is not None and not other.value.is_valid
                return self._unless_null(self._column(operand), value) if is_null_else else UNKNOWN
            case kind, (left, right) if kind in _COMPARISONS:
                return self._compared(left, _COMPARISONS[kind], right)
            case "literal", () if node.value is not None and pa.types.is_boolean(node.value.type):
                return constant(node.value.as_py())
        return is_true(self._column(node))

    def _column(self, node: Node) -> BoundColumn | None:
        return column_at(self.schema, node.path) if node.kind == "column" else None

    def _compared(self, left: Node, operator: Operator, right: Node) -> Implied:
        column = self._column(left)
        if column is None:
            column, right, operator = self._column(right), left, FLIPPED.get(operator, operator)
        if column is None or right.kind != "literal" or right.value is None:
            return UNKNOWN
        value = _of_type(right.value, column.type)
        found = compared(column, operator, value)
        if found is UNKNOWN or self.nan_is_greatest or not pa.types.is_floating(column.type):
            return found
        if isnan(value.as_py()):
            return UNKNOWN
        # Here, not in Arrow, NaN is above the number.
        return replace(found, exact=operator not in (Operator.GT, Operator.GE))

    def _listed(self, column: BoundColumn | None, options: pa.Scalar | None) -> Implied:
        if column is None or not isinstance(options, pa.StructScalar):
            return UNKNOWN
        found = among(column, _listed_values(options["value_set"].values, column.type))
        # Arrow's is FALSE for NULL, and compares the bits of -0.0 and NaN.
        alike = column == self.not_null and not pa.types.is_floating(column.type)
        return replace(found, exact=found.exact and (alike or self.nan_is_greatest))

    def _unless_null(self, column: BoundColumn | None, value: Node) -> Implied:
        """A condition on a column, where the column is not NULL; else NULL."""
        found = replace(self, not_null=column).condition(value)
        if column is None or found.predicate is None:
            return UNKNOWN
        are_null_for_null = all(
            isinstance(leaf, In | Compare) and leaf.column == column
            for leaf in found.predicate.leaves()
        )
        return replace(found, exact=found.exact and are_null_for_null)


def _options(node: Node) -> Mapping[str, Any]:
    """The options of a function."""
    return {} if node.value is None else node.value.as_py()


def _of_type(value: pa.Scalar, kind: pa.DataType) -> pa.Scalar:
    """The value in a column's type if Arrow compares the two exactly, else as it is."""
    if not value.is_valid:
        return value
    if pa.types.is_signed_integer(kind) and pa.types.is_integer(value.type):
        number = value.as_py()
        return integer_scalar(number, kind) if fits(number, kind) else value
    if pa.types.is_float32(kind) and pa.types.is_float64(value.type):
        single = value.cast(kind, safe=False)
        return single if single.cast(value.type).equals(value) else value
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(value.type):
        alike = value.type.unit == kind.unit and (value.type.tz is None) == (kind.tz is None)
        return scalar(value.value, kind) if alike else value
    return value


def _listed_values(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Those of the values that a column of a type can hold, in that type; as they are if Arrow does
    not compare the two exactly."""
    if values.type == kind or values.null_count:
        return values
    if pa.types.is_signed_integer(kind) and pa.types.is_integer(values.type):
        return integers_array([each for each in values.to_pylist() if fits(each, kind)], kind)
    if pa.types.is_decimal128(kind) and pa.types.is_decimal128(values.type):
        try:
            return values.cast(kind)
        except pa.ArrowInvalid:  # more digits
            return values
    return values
