"""Bounds that Parquet files hold of their values, made into those that predicates are held against:
only what is sound."""

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from hudi_index_service.predicate.bounds import ValueBounds
from hudi_index_service.predicate.expression import (
    Column,
    Compare,
    In,
    IsNull,
    Like,
    Not,
    Predicate,
)


def leaf_columns(leaf: Predicate) -> frozenset[Column]:
    """The columns of a leaf that bounds may decide; none of any other leaf."""
    match leaf:
        case Not(operand):
            return leaf_columns(operand)
        case Compare(column) | In(column) | IsNull(column) | Like(column):
            return frozenset((column,))
    return frozenset()


def stored_type(schema: pa.Schema, path: Sequence[str]) -> pa.DataType | None:
    """The type that a file has a column in; None where it does not have it under that very name,
    or several times."""
    fields: list[pa.Field] = list(schema)
    found: pa.DataType | None = None
    for part in path:
        same = [each for each in fields if each.name == part]
        if len(same) != 1:
            return None
        found = same[0].type
        fields = list(found) if pa.types.is_struct(found) else []
    return found


def is_comparable(stored: pa.DataType | None, asked: pa.DataType) -> bool:
    """Whether bounds in a file are those of the values that a column of the table has: of another
    type only integers are, which are widened without change."""
    if stored is None:
        return False
    t = pa.types
    return stored == asked or bool(t.is_signed_integer(stored) and t.is_signed_integer(asked))


def value_bounds(
    nulls: int | None, rows: int, least: Any, greatest: Any, *, nested: bool
) -> ValueBounds:
    """Bounds as predicates want them.

    Args:
        nulls: How many of the `rows` values are NULL, if known. Of a field of a struct the count is
            not relied on: whether NULL structs count is the writer's choice.
        least, greatest: As they are in the file; None if not known.
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
