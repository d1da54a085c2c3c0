"""Converts the bounds in Parquet files to those that predicates are checked against, as far as they
are sound."""

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from hudi_index_service.predicate.bounds import ValueBounds
from hudi_index_service.predicate.expression import (
    BoundColumn,
    Compare,
    In,
    IsNull,
    Like,
    Not,
    Predicate,
)


def leaf_columns(leaf: Predicate) -> frozenset[BoundColumn]:
    """The columns of a leaf that bounds can decide; empty for other leaves."""
    match leaf:
        case Not(operand):
            return leaf_columns(operand)
        case Compare(column) | In(column) | IsNull(column) | Like(column):
            return frozenset((column,))
    return frozenset()


def stored_type(schema: pa.Schema, path: Sequence[str]) -> pa.DataType | None:
    """The stored type of a column; None if the file has no column of exactly this name, or
    several."""
    parent: pa.Schema | pa.StructType | None = schema
    stored: pa.DataType | None = None
    for part in path:
        same = [] if parent is None else parent.get_all_field_indices(part)
        if parent is None or len(same) != 1:
            return None
        stored = parent.field(same[0]).type
        parent = stored if pa.types.is_struct(stored) else None
    return stored


def is_comparable(stored: pa.DataType | None, column_type: pa.DataType) -> bool:
    """Whether bounds in a file are valid for the table's column: if the types are equal, or both
    are integers, which are widened without change."""
    if stored is None:
        return False
    t = pa.types
    return stored == column_type or bool(
        t.is_signed_integer(stored) and t.is_signed_integer(column_type)
    )


def value_bounds(
    nulls: int | None, rows: int, least: Any, greatest: Any, *, nested: bool
) -> ValueBounds:
    """The bounds in the form that predicates are checked against.

    Args:
        nulls: The number of NULLs among the `rows` values, if known. It is ignored for fields of
            structs, where writers differ in whether NULL structs count.
        least, greatest: As stored in the file; None if not known.
    """
    if any(
        bound is None or (isinstance(bound, float) and math.isnan(bound))
        for bound in (least, greatest)
    ):
        least = greatest = None
    return ValueBounds(
        may_be_null=nested or nulls != 0,
        may_be_value=nested or nulls != rows or least is not None,
        least=least,
        greatest=greatest,
    )
